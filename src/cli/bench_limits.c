/* bench_limits.c - compiles the probes and times them: see bench_limits.h. */
#include "cli/bench_limits.h"

#include <stdio.h>

#include "attention/cuda/device_state.h"
#include "base/status.h"
#include "device/cuda/workers.h"

enum {
    REPLAYS = 11,
    READ_THREADS = 512,
    READ_BLOCKS_PER_UNIT = 4,
    TENSOR_THREADS = 256,
    TENSOR_ROUNDS = 4000,
    CHAIN = 1000,
};
#define TENSOR_FLOPS 4194304.0 /* a block and round: as bench_probe.cu has it */
#define BYTES_PER_US 1e3       /* at 1 GB/s */
#define FLOPS_PER_US 1e6       /* at 1 TFLOP/s */

/* What is measured with. */
typedef struct limits_state {
    const bench_device *device;
    mlai_cu_module probes;
    void *data;
    size_t bytes;
} limits_state;

/* Launches of one kernel, one after another. */
typedef struct probe {
    mlai_cu_function function;
    unsigned blocks, threads;
    void **parameters;
    int32_t times;
} probe;

static mla_status enqueue_probe(void *user, const bench_device *device, mla_error *err)
{
    const probe *p = user;
    const mlai_cu_launch launch = {
        .grid = {p->blocks, 1, 1}, .block = {p->threads, 1, 1}, .stream = device->stream};
    for (int32_t i = 0; i < p->times; i++) {
        MLAI_TRY(MLAI_CU(device->cuda,
                         cuLaunchKernelEx(&launch, p->function, p->parameters, NULL)));
    }
    return MLA_OK;
}

static mla_status time_graph(const limits_state *s, bench_enqueue enqueue, void *user,
                             double *us, mla_error *err)
{
    mlai_cu_graph_exec graph = NULL;
    mla_status status = bench_device_capture(s->device, enqueue, user, &graph, err);
    if (status == MLA_OK) {
        status = bench_device_time(s->device, &graph, 1, REPLAYS, us, err);
    }
    bench_device_drop(s->device, graph);
    return status;
}

static mla_status time_probe(const limits_state *s, const char *name, probe *p, double *us,
                             mla_error *err)
{
    mlai_cuda *cuda = s->device->cuda;
    MLAI_TRY(MLAI_CU(cuda, cuModuleGetFunction(&p->function, s->probes, name)));
    return time_graph(s, enqueue_probe, p, us, err);
}

static mla_status measure_memory(limits_state *s, bench_device_limits *out, mla_error *err)
{
    double us = 0;
    unsigned long long num = s->bytes / sizeof(uint64_t[2]);
    void *parameters[] = {&s->data, &num, &s->data};
    probe read = {NULL, (unsigned)s->device->cuda->num_units * READ_BLOCKS_PER_UNIT,
                  READ_THREADS, parameters, 1};
    MLAI_TRY(time_probe(s, "probe_read", &read, &us, err));
    out->read_gbps = (double)s->bytes / us / BYTES_PER_US;
    return MLA_OK;
}

static mla_status measure_tensor(limits_state *s, bench_device_limits *out, mla_error *err)
{
    double us = 0;
    int rounds = TENSOR_ROUNDS;
    void *parameters[] = {&rounds, &s->data};
    unsigned blocks = (unsigned)s->device->cuda->num_units;
    probe tensor = {NULL, blocks, TENSOR_THREADS, parameters, 1};
    MLAI_TRY(time_probe(s, "probe_tensor", &tensor, &us, err));
    out->tensor_tflops = TENSOR_FLOPS * TENSOR_ROUNDS * blocks / us / FLOPS_PER_US;
    return MLA_OK;
}

static mla_status measure_launch(limits_state *s, bench_device_limits *out, mla_error *err)
{
    double us = 0;
    probe nothing = {NULL, 1, 1, NULL, 1};
    MLAI_TRY(time_probe(s, "probe_nothing", &nothing, &out->launch_us, err));
    nothing.times = CHAIN;
    MLAI_TRY(time_probe(s, "probe_nothing", &nothing, &us, err));
    out->node_us = us / CHAIN;
    return MLA_OK;
}

static mla_status keep_on(void *user, mla_error *err)
{
    (void)user;
    (void)err;
    return MLA_OK;
}

static mla_status load_probes(void *user, int32_t index, const void *image,
                              size_t image_bytes, mla_error *err)
{
    (void)index;
    (void)image_bytes;
    limits_state *s = user;
    return MLAI_CU(s->device->cuda, cuModuleLoadData(&s->probes, image));
}

static mla_status compile_probes(limits_state *s, mla_error *err)
{
    mlai_nvrtc nvrtc;
    mla_context *context = s->device->context;
    char architecture[2 * MLAI_CUDA_OPTION_BYTES];
    const char *const options[] = {architecture};
    const mlai_compilation text = {"bench_probe", bench_probe_text, options, 1};
    (void)snprintf(architecture, sizeof architecture, "--gpu-architecture=%s",
                   mlai_cuda_state_of(context)->architecture.text);
    MLAI_TRY(mlai_nvrtc_open(NULL, &nvrtc, err));
    const mlai_workers workers = {.ledger = &context->ledger,
                                  .nvrtc = &nvrtc,
                                  .num_workers = 1,
                                  .keep_on = keep_on,
                                  .take = load_probes,
                                  .user = s};
    return mlai_workers_run(&workers, &text, 1, err);
}

mla_status bench_limits_measure(const bench_device *device, void *data, size_t bytes,
                                bench_device_limits *out, mla_error *err)
{
    limits_state s = {device, NULL, data, bytes};
    mla_status status = MLA_OK;
    MLAI_TRY_OR(end, compile_probes(&s, err));
    MLAI_TRY_OR(end, measure_memory(&s, out, err));
    MLAI_TRY_OR(end, measure_tensor(&s, out, err));
    MLAI_TRY_OR(end, measure_launch(&s, out, err));
end:
    if (s.probes) {
        (void)device->cuda->driver->cuModuleUnload(s.probes);
    }
    return status;
}
