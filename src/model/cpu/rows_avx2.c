/* rows_avx2.c - what is done to one row at a time, with AVX2 and FMA, and their table. */
#include <immintrin.h>
#include <math.h>

#include "model/cpu/load.h"
#include "model/cpu/operators.h"

enum { LANES = 8 };

static __m256 load_weight_8(const vector *v, size_t i)
{
    const unsigned char *data = v->data;
    if (v->dtype == MLA_F32) {
        return _mm256_loadu_ps((const float *)(const void *)(data + i * sizeof(float)));
    }
    __m128i bits = _mm_loadu_si128((const void *)(data + i * sizeof(uint16_t)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

static float sum_lanes(__m256 v)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

/* e^x: x = n ln 2 + r with |r| <= ln 2 / 2 (ln 2 in two parts, the first short enough that
 * n times it is exact), a polynomial of degree 6 for e^r, 2^n in the exponent. 0 below
 * -87.3, where e^x leaves the normal numbers; inf above 88.7. Within 2 units in the last
 * place. NaN stays NaN. */
static __m256 exp_8(__m256 x)
{
    const __m256 low = _mm256_set1_ps(-87.3F);
    const __m256 high = _mm256_set1_ps(88.7F);
    __m256 is_zero = _mm256_cmp_ps(x, low, _CMP_LT_OQ);
    __m256 is_inf = _mm256_cmp_ps(x, high, _CMP_GT_OQ);
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504F)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    n = _mm256_min_ps(_mm256_set1_ps(127.0F), _mm256_max_ps(_mm256_set1_ps(-126.0F), n));
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375F), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4F), r);
    __m256 p = _mm256_set1_ps(1.0F / 720.0F);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
    __m256i bits = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    __m256 y = _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23)));
    y = _mm256_blendv_ps(y, _mm256_set1_ps(INFINITY), is_inf);
    return _mm256_andnot_ps(is_zero, y);
}

static float exp_1(float x)
{
    return _mm256_cvtss_f32(exp_8(_mm256_set1_ps(x)));
}

static void rms_norm_avx2(const float *x, const vector *weight, float eps, float *y)
{
    size_t num = (size_t)weight->num;
    size_t whole = num / LANES * LANES;
    __m256 acc = _mm256_setzero_ps();
    for (size_t i = 0; i < whole; i += LANES) {
        __m256 v = _mm256_loadu_ps(x + i);
        acc = _mm256_fmadd_ps(v, v, acc);
    }
    float sum = sum_lanes(acc);
    for (size_t i = whole; i < num; i++) {
        sum += x[i] * x[i];
    }
    float scale = 1.0F / sqrtf(sum / (float)num + eps);
    for (size_t i = 0; i < whole; i += LANES) {
        __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(scale));
        _mm256_storeu_ps(y + i, _mm256_mul_ps(v, load_weight_8(weight, i)));
    }
    for (size_t i = whole; i < num; i++) {
        y[i] = x[i] * scale * load_weight(weight->data, weight->dtype, i);
    }
}

static void silu_mul_avx2(float *gate, const float *up, size_t num)
{
    const __m256 one = _mm256_set1_ps(1.0F);
    size_t i = 0;
    for (; i + LANES <= num; i += LANES) {
        __m256 g = _mm256_loadu_ps(gate + i);
        __m256 e = exp_8(_mm256_sub_ps(_mm256_setzero_ps(), g));
        __m256 s = _mm256_div_ps(g, _mm256_add_ps(one, e));
        _mm256_storeu_ps(gate + i, _mm256_mul_ps(s, _mm256_loadu_ps(up + i)));
    }
    for (; i < num; i++) {
        gate[i] = gate[i] / (1.0F + exp_1(-gate[i])) * up[i];
    }
}

static void add_scaled_avx2(float *y, const float *x, float scale, size_t num)
{
    size_t i = 0;
    for (; i + LANES <= num; i += LANES) {
        __m256 sum = _mm256_fmadd_ps(_mm256_set1_ps(scale), _mm256_loadu_ps(x + i),
                                     _mm256_loadu_ps(y + i));
        _mm256_storeu_ps(y + i, sum);
    }
    for (; i < num; i++) {
        y[i] = fmaf(scale, x[i], y[i]);
    }
}

static float max_of_avx2(const float *x, int32_t num)
{
    float best = x[0];
    int32_t i = 0;
    if (num >= LANES) {
        __m256 m = _mm256_loadu_ps(x);
        for (i = LANES; i + LANES <= num; i += LANES) {
            m = _mm256_max_ps(m, _mm256_loadu_ps(x + i));
        }
        float lane[LANES];
        _mm256_storeu_ps(lane, m);
        for (int32_t j = 0; j < LANES; j++) {
            best = lane[j] > best ? lane[j] : best;
        }
    }
    for (; i < num; i++) {
        best = x[i] > best ? x[i] : best;
    }
    return best;
}

static float exp_sum_avx2(float *x, int32_t num, float scale, float max)
{
    __m256 acc = _mm256_setzero_ps();
    int32_t i = 0;
    for (; i + LANES <= num; i += LANES) {
        __m256 e = exp_8(_mm256_fmsub_ps(_mm256_set1_ps(scale), _mm256_loadu_ps(x + i),
                                         _mm256_set1_ps(max)));
        _mm256_storeu_ps(x + i, e);
        acc = _mm256_add_ps(acc, e);
    }
    float sum = sum_lanes(acc);
    for (; i < num; i++) {
        x[i] = exp_1(fmaf(scale, x[i], -max));
        sum += x[i];
    }
    return sum;
}

const operators operators_avx2 = {
    .name = "avx2",
    .isa = MLA_ISA_AVX2,
    .gemm_nt = gemm_nt_avx2,
    .gemm_nn = gemm_nn_avx2,
    .rms_norm = rms_norm_avx2,
    .silu_mul = silu_mul_avx2,
    .add_scaled = add_scaled_avx2,
    .max_of = max_of_avx2,
    .exp_sum = exp_sum_avx2,
};
