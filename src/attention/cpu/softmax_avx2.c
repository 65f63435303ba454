/* softmax_avx2.c - a step of the running softmax: see softmax_avx2.h. */
#include "attention/cpu/softmax_avx2.h"

#include <math.h>

#include "attention/cpu/exp_avx2.h"
#include "attention/cpu/kernels.h"

enum { LANES = 8, NUM_VECTORS = MLAI_TILE_TOKENS / LANES };

/* All ones in the lanes whose bit is set. */
static inline __m256 lanes_of(uint64_t bits)
{
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i byte = _mm256_set1_epi32((int)(bits & 0xff));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(byte, bit), bit));
}

static inline float max_lane(__m256 v)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

static inline float sum_lanes(__m256 v)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/* max(a, b) of the machine is b where a is NaN: a NaN score does not become the top. */
static inline float scale_and_mask(float *score, uint64_t counted, float scale)
{
    const __m256 nothing = _mm256_set1_ps(-INFINITY);
    __m256 top = nothing;
    for (size_t i = 0; i < NUM_VECTORS; i++) {
        __m256 scaled =
            _mm256_mul_ps(_mm256_load_ps(score + i * LANES), _mm256_set1_ps(scale));
        scaled = _mm256_blendv_ps(nothing, scaled, lanes_of(counted >> (i * LANES)));
        _mm256_store_ps(score + i * LANES, scaled);
        top = _mm256_max_ps(scaled, top);
    }
    return max_lane(top);
}

float mlai_softmax_step_avx2(float *score, uint64_t counted, float scale, float *top,
                             float *weight)
{
    float tile_top = scale_and_mask(score, counted, scale);
    float new_top = tile_top > *top ? tile_top : *top;
    float base = new_top == -INFINITY ? 0.0F : new_top;
    const __m256 wide_base = _mm256_set1_ps(base);
    __m256 sums = _mm256_setzero_ps();
    for (size_t i = 0; i < NUM_VECTORS; i++) {
        __m256 p =
            mlai_exp_avx2(_mm256_sub_ps(_mm256_load_ps(score + i * LANES), wide_base));
        _mm256_store_ps(score + i * LANES, p);
        sums = _mm256_add_ps(sums, p);
    }
    float shrink = _mm256_cvtss_f32(mlai_exp_avx2(_mm256_set1_ps(*top - base)));
    *weight = *weight * shrink + sum_lanes(sums);
    *top = new_top;
    return shrink;
}
