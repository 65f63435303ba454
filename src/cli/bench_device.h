/* bench_device.h - timing on a CUDA device: one stream, graphs captured on it, and replays
 * between events. Its context is current from open to close. */
#ifndef MLA_CLI_BENCH_DEVICE_H
#define MLA_CLI_BENCH_DEVICE_H

#include "device/cuda/device.h"
#include "device/pool.h"

enum { BENCH_MAX_REPLAYS = 160 };

typedef struct bench_device {
    mla_context *context;
    mlai_cuda *cuda;
    mlai_cu_stream stream;
    mlai_pool *pool; /* of this machine's CPUs: for what is checked */
    mlai_cu_event begin[BENCH_MAX_REPLAYS], end[BENCH_MAX_REPLAYS];
} bench_device;

/* out: zeroed before; whatever comes, bench_device_close. */
mla_status bench_device_open(mla_context *context, bench_device *out, mla_error *err);
void bench_device_close(bench_device *device);

/* What enqueue puts on the stream becomes a graph. out: owned, bench_device_drop. */
typedef mla_status (*bench_enqueue)(void *user, const bench_device *device, mla_error *err);
mla_status bench_device_capture(const bench_device *device, bench_enqueue enqueue,
                                void *user, mlai_cu_graph_exec *out, mla_error *err);
void bench_device_drop(const bench_device *device, mlai_cu_graph_exec graph);

/* Replays graph after graph, each between events, after each has run once; the median goes to
 * *us. num_replays: at most BENCH_MAX_REPLAYS. */
mla_status bench_device_time(const bench_device *device, const mlai_cu_graph_exec *graph,
                             int32_t num_graphs, int32_t num_replays, double *us,
                             mla_error *err);

#endif
