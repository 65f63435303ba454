/* fma_rate_avx2.c - the loop with AVX2 and FMA: see fma_rate.h. */
#include <immintrin.h>

#include "attention/cpu/fma_rate.h"

float mlai_fma_spin_avx2(int64_t num_rounds, float start)
{
    enum { CHAINS = MLAI_FMA_CHAINS };
    __m256 sums[CHAINS];
    const __m256 factor = _mm256_set1_ps(0.9990234375F);
    const __m256 term = _mm256_set1_ps(start);
    for (int i = 0; i < CHAINS; i++) {
        sums[i] = _mm256_mul_ps(term, _mm256_set1_ps((float)i));
    }
    for (int64_t round = 0; round < num_rounds; round++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
        }
    }
    __m256 all = sums[0];
    for (int i = 1; i < CHAINS; i++) {
        all = _mm256_add_ps(all, sums[i]);
    }
    return _mm256_cvtss_f32(all);
}
