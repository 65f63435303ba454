/* bench_device.c - a stream, its graphs and its clock: see bench_device.h. */
#include "cli/bench_device.h"

#include <stdlib.h>

#include "attention/cuda/device_state.h"
#include "base/status.h"
#include "device/cpu.h"

#define US_PER_MS 1e3

static mla_status make_events(bench_device *device, mla_error *err)
{
    for (int i = 0; i < BENCH_MAX_REPLAYS; i++) {
        MLAI_TRY(MLAI_CU(device->cuda, cuEventCreate(&device->begin[i], 0)));
        MLAI_TRY(MLAI_CU(device->cuda, cuEventCreate(&device->end[i], 0)));
    }
    return MLA_OK;
}

mla_status bench_device_open(mla_context *context, bench_device *out, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    out->context = context;
    out->cuda = cuda;
    MLAI_TRY(MLAI_CU(cuda, cuStreamCreate(&out->stream, MLAI_CU_STREAM_NON_BLOCKING)));
    MLAI_TRY(make_events(out, err));
    return mlai_pool_start(mlai_context_ledger(context), mlai_cpu_count(), &out->pool, err);
}

void bench_device_close(bench_device *device)
{
    if (!device->cuda) {
        return;
    }
    const mlai_cuda_driver *driver = device->cuda->driver;
    if (device->pool) {
        mlai_pool_stop(&device->pool);
    }
    for (int i = 0; i < BENCH_MAX_REPLAYS && device->begin[i]; i++) {
        (void)driver->cuEventDestroy(device->begin[i]);
        if (device->end[i]) {
            (void)driver->cuEventDestroy(device->end[i]);
        }
    }
    if (device->stream) {
        (void)driver->cuStreamDestroy(device->stream);
    }
    mlai_cuda_leave(device->cuda);
    *device = (bench_device){0};
}

mla_status bench_device_capture(const bench_device *device, bench_enqueue enqueue,
                                void *user, mlai_cu_graph_exec *out, mla_error *err)
{
    mlai_cuda *cuda = device->cuda;
    mlai_cu_graph graph = NULL;
    MLAI_TRY(
        MLAI_CU(cuda, cuStreamBeginCapture(device->stream, MLAI_CU_CAPTURE_THREAD_LOCAL)));
    mla_status status = enqueue(user, device, err);
    mla_status ended =
        mlai_cuda_judge(cuda, cuda->driver->cuStreamEndCapture(device->stream, &graph),
                        "cuStreamEndCapture", MLAI_HERE, status == MLA_OK ? err : NULL);
    status = status == MLA_OK ? ended : status;
    if (status == MLA_OK) {
        status = MLAI_CU(cuda, cuGraphInstantiateWithFlags(out, graph, 0));
    }
    if (graph) {
        (void)cuda->driver->cuGraphDestroy(graph);
    }
    return status;
}

void bench_device_drop(const bench_device *device, mlai_cu_graph_exec graph)
{
    if (graph) {
        (void)device->cuda->driver->cuGraphExecDestroy(graph);
    }
}

static mla_status replay(const bench_device *device, const mlai_cu_graph_exec *graph,
                         int32_t num_graphs, int32_t num_replays, mla_error *err)
{
    mlai_cuda *cuda = device->cuda;
    mlai_cu_stream stream = device->stream;
    for (int32_t i = 0; i < num_graphs; i++) {
        MLAI_TRY(MLAI_CU(cuda, cuGraphLaunch(graph[i], stream)));
    }
    MLAI_TRY(MLAI_CU(cuda, cuStreamSynchronize(stream)));
    for (int32_t i = 0; i < num_replays; i++) {
        MLAI_TRY(MLAI_CU(cuda, cuEventRecord(device->begin[i], stream)));
        MLAI_TRY(MLAI_CU(cuda, cuGraphLaunch(graph[i % num_graphs], stream)));
        MLAI_TRY(MLAI_CU(cuda, cuEventRecord(device->end[i], stream)));
    }
    return MLAI_CU(cuda, cuStreamSynchronize(stream));
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

mla_status bench_device_time(const bench_device *device, const mlai_cu_graph_exec *graph,
                             int32_t num_graphs, int32_t num_replays, double *us,
                             mla_error *err)
{
    float ms[BENCH_MAX_REPLAYS];
    MLAI_TRY(replay(device, graph, num_graphs, num_replays, err));
    for (int32_t i = 0; i < num_replays; i++) {
        MLAI_TRY(MLAI_CU(device->cuda,
                         cuEventElapsedTime(&ms[i], device->begin[i], device->end[i])));
    }
    qsort(ms, (size_t)num_replays, sizeof ms[0], by_value);
    *us = (double)ms[num_replays / 2] * US_PER_MS;
    return MLA_OK;
}
