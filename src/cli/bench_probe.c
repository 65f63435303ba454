/* bench_probe.c - what the machine reaches at most: multiply-adds in registers, and reading
 * memory. */
#include <string.h>

#include "attention/context.h"
#include "attention/cpu/fma_rate.h"
#include "attention/cpu/kernels.h"
#include "base/clock.h"
#include "base/status.h"
#include "cli/bench.h"

enum {
    PROBE_BYTES = 128 << 20,
    TASK_BYTES = 1 << 20,
    NUM_TASKS = PROBE_BYTES / TASK_BYTES,
    LANES = 32, /* independent sums: the loop waits for memory, not for them */
    FMA_NS = 4000000,
    ALIGN_BYTES = 64,
};
#define PER_GIGA 1e-9

mla_status bench_probe_open(mla_context *context, bench_probe *out, mla_error *err)
{
    void *data = NULL;
    MLAI_TRY(mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_OTHER, PROBE_BYTES,
                             ALIGN_BYTES, &data, err));
    memset(data, 1, PROBE_BYTES); /* so that every page is there */
    const mlai_cpu_kernels *kernels = mlai_cpu_kernels_best(context->isa_mask);
    *out = (bench_probe){context, data, kernels->isa};
    return MLA_OK;
}

void bench_probe_close(bench_probe *probe)
{
    if (probe->data) {
        mla_memory_give(probe->context, MLA_SPACE_HOST, MLA_FOR_OTHER, PROBE_BYTES,
                        probe->data);
    }
    probe->data = NULL;
}

static void read_task(void *arg, int64_t index, int32_t worker)
{
    const uint64_t *data = arg;
    const uint64_t *at = data + (size_t)index * (TASK_BYTES / sizeof *data);
    uint64_t sums[LANES] = {0};
    (void)worker;
    for (size_t i = 0; i < TASK_BYTES / sizeof *data; i += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) {
            sums[lane] += at[i + lane];
        }
    }
    volatile uint64_t used = 0;
    for (size_t lane = 0; lane < LANES; lane++) {
        used = used + sums[lane];
    }
}

void bench_probe_measure(const bench_probe *probe, bench_limits *limits)
{
    mlai_pool *pool = mlai_context_pool(probe->context);
    double gflops = mlai_fma_rate(pool, probe->isa, FMA_NS) * PER_GIGA;
    int64_t begin_ns = mlai_now_ns();
    mlai_pool_run(pool, NUM_TASKS, read_task, probe->data);
    double gbps = PROBE_BYTES / (double)(mlai_now_ns() - begin_ns);
    limits->fma_gflops = gflops > limits->fma_gflops ? gflops : limits->fma_gflops;
    limits->read_gbps = gbps > limits->read_gbps ? gbps : limits->read_gbps;
    limits->num_threads = mlai_pool_num_threads(pool);
    limits->isa = probe->isa == MLA_ISA_AVX2 ? "avx2" : "c";
}

void bench_keep_best(bench_row *row, int64_t ns)
{
    if (row->time_ns == 0 || ns < row->time_ns) {
        row->time_ns = ns > 0 ? ns : 1;
    }
}
