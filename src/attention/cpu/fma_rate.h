/* fma_rate.h - how many floating-point operations a second these threads can do at all: a
 * loop of multiply-adds that never leaves the registers. What a kernel reaches is a share
 * of it, measured in the same run on the same threads. */
#ifndef MLA_ATTENTION_CPU_FMA_RATE_H
#define MLA_ATTENTION_CPU_FMA_RATE_H

#include "device/pool.h"

/* FLOP/s (a multiply-add is two) of all threads of the pool with the instructions of `isa`,
 * the best of the rounds that fit in about duration_ns, at least one. isa: MLA_ISA_C or
 * MLA_ISA_AVX2, and the CPU must have it; 0 for others. */
double mlai_fma_rate(mlai_pool *pool, mla_isa isa, int64_t duration_ns);

/* num_rounds of multiply-adds in registers; the result means nothing but must be used. */
float mlai_fma_spin_c(int64_t num_rounds, float start);
float mlai_fma_spin_avx2(int64_t num_rounds, float start);

enum {
    MLAI_FMA_CHAINS = 12, /* independent sums: more than latency times throughput */
    MLAI_FMA_LANES_C = 4,
    MLAI_FMA_LANES_AVX2 = 8,
};

#endif
