/* bench_limits.h - what a CUDA device reaches at most, measured with kernels of the bench's own:
 * bench_probe.cu. */
#ifndef MLA_CLI_BENCH_LIMITS_H
#define MLA_CLI_BENCH_LIMITS_H

#include "cli/bench_device.h"

extern const char bench_probe_text[]; /* bench_probe.cu, NUL-terminated */

typedef struct bench_device_limits {
    double read_gbps;
    double tensor_tflops;      /* bf16, by the widest instruction that the device has */
    double launch_us, node_us; /* a graph of one empty kernel; of 1000, one of them */
} bench_device_limits;

/* data: device memory with random numbers, read. */
mla_status bench_limits_measure(const bench_device *device, void *data, size_t bytes,
                                bench_device_limits *out, mla_error *err);

#endif
