/* exp_avx2.h - e^x of eight numbers x <= 0, as softmax needs them.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2; e^r is a polynomial, and n is added to its exponent.
 * Within 1.25 ulp of e^x for x >= ln(2^-126), which is -87.34; exactly 1 at 0; exactly 0
 * below, where the result would be subnormal; NaN for NaN. docs/numerics.md has the sum. */
#ifndef MLA_ATTENTION_CPU_EXP_AVX2_H
#define MLA_ATTENTION_CPU_EXP_AVX2_H

#include <immintrin.h>

static inline __m256 mlai_exp_avx2(__m256 x)
{
    const __m256 log2_e = _mm256_set1_ps(0x1.715476p+0F);
    const __m256 ln2_high = _mm256_set1_ps(0x1.62e4p-1F); /* few bits: n * this is exact */
    const __m256 ln2_low = _mm256_set1_ps(0x1.7f7d1cp-20F);
    const __m256 smallest = _mm256_set1_ps(-0x1.5d589ep+6F); /* ln(2^-126), rounded up */
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, log2_e),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, ln2_high, x);
    r = _mm256_fnmadd_ps(n, ln2_low, r);
    __m256 tail = _mm256_set1_ps(0x1.6d113cp-10F);
    tail = _mm256_fmadd_ps(tail, r, _mm256_set1_ps(0x1.120ba2p-7F));
    tail = _mm256_fmadd_ps(tail, r, _mm256_set1_ps(0x1.55551ap-5F));
    tail = _mm256_fmadd_ps(tail, r, _mm256_set1_ps(0x1.5554dcp-3F));
    tail = _mm256_fmadd_ps(tail, r, _mm256_set1_ps(0.5F));
    __m256 power = _mm256_fmadd_ps(_mm256_mul_ps(r, r), tail, r);
    power = _mm256_add_ps(power, _mm256_set1_ps(1.0F));
    __m256i scaled = _mm256_add_epi32(_mm256_castps_si256(power),
                                      _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23));
    __m256 is_tiny = _mm256_cmp_ps(x, smallest, _CMP_LT_OQ);
    return _mm256_andnot_ps(is_tiny, _mm256_castsi256_ps(scaled));
}

#endif
