/* fma_rate.c - the loop in portable C, and the clock around it: see fma_rate.h. */
#include "attention/cpu/fma_rate.h"

#include "base/clock.h"

enum { ROUNDS = 1 << 19 /* of a task: a millisecond or two */ };

typedef float (*spin_function)(int64_t num_rounds, float start);

/* Portable multiply-adds, in vectors of the baseline if the compiler makes them. The loops
 * over lanes have constant bounds, so that all sums stay in registers. */
float mlai_fma_spin_c(int64_t num_rounds, float start)
{
    enum { CHAINS = MLAI_FMA_CHAINS, LANES = MLAI_FMA_LANES_C };
    typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
    lanes sums[CHAINS];
    const lanes factor = {0.9990234375F, 0.9990234375F, 0.9990234375F, 0.9990234375F};
    const lanes term = {start, start, start, start};
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = term * (float)i;
    }
    for (int64_t round = 0; round < num_rounds; round++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = sums[i] * factor + term;
        }
    }
    lanes all = sums[0];
    for (int i = 1; i < CHAINS; i++) {
        all += sums[i];
    }
    return all[0] + all[1] + all[2] + all[3];
}

struct spin {
    spin_function function;
};

static void spin_task(void *arg, int64_t index, int32_t worker)
{
    const struct spin *spin = arg;
    (void)worker;
    volatile float used = spin->function(ROUNDS, 0x1p-10F * (float)(index + 1));
    (void)used;
}

static double flops_of_task(int32_t lanes)
{
    return 2.0 * (double)lanes * MLAI_FMA_CHAINS * ROUNDS;
}

double mlai_fma_rate(mlai_pool *pool, mla_isa isa, int64_t duration_ns)
{
    if (isa != MLA_ISA_C && isa != MLA_ISA_AVX2) {
        return 0.0;
    }
    struct spin spin = {isa == MLA_ISA_C ? mlai_fma_spin_c : mlai_fma_spin_avx2};
    double flops = flops_of_task(isa == MLA_ISA_C ? MLAI_FMA_LANES_C : MLAI_FMA_LANES_AVX2);
    int32_t num_threads = mlai_pool_num_threads(pool);
    double best = 0.0;
    int64_t started = mlai_now_ns();
    int64_t now = started;
    do {
        int64_t before = now;
        mlai_pool_run(pool, num_threads, spin_task, &spin);
        now = mlai_now_ns();
        double rate = flops * num_threads / ((double)(now - before) * 1e-9);
        best = rate > best ? rate : best;
    } while (now - started < duration_ns);
    return best;
}
