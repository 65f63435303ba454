/* rows_avx2.c - stored numbers to f32, sixteen at a time: see rows_avx2.h. */
#include "attention/cpu/rows_avx2.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/convert.h"

enum { STEP = 16, GROUP = 128 };

static void copy_f32(const unsigned char *from, size_t num, float *to)
{
    memcpy(to, from, num * sizeof *to);
}

static __m256 widen_bf16(__m128i half)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

static void from_bf16(const unsigned char *from, size_t num, float *to)
{
    for (size_t i = 0; i < num; i += STEP) {
        const __m128i *at = (const __m128i *)(const void *)(from + 2 * i);
        _mm256_store_ps(to + i, widen_bf16(_mm_loadu_si128(at)));
        _mm256_store_ps(to + i + 8, widen_bf16(_mm_loadu_si128(at + 1)));
    }
}

static void from_e4m3_by_table(const unsigned char *from, size_t num, float scale,
                               float *to)
{
    for (size_t i = 0; i < num; i++) {
        to[i] = mlai_f32_from_e4m3(from[i]) * scale;
    }
}

/* e4m3 fits in f16 shifted: S.EEEE.MMM becomes S.0EEEE.MMM0000000, which is the value
 * times 2^-8, subnormals included. Only NaN (E and M all ones) must be made one. `scale`
 * brings the 2^8 back: the product is rounded once, as code * scale is. Scales that leave
 * no room for it (no group of finite numbers has one) take the slow way. */
static void from_e4m3(const unsigned char *from, size_t num, float scale, float *to)
{
    if (!(fabsf(scale) < 0x1p120F)) {
        from_e4m3_by_table(from, num, scale, to);
        return;
    }
    const __m256i magnitude_mask = _mm256_set1_epi16(0x3f80);
    const __m256i sign_mask = _mm256_set1_epi16((short)0x8000);
    const __m256i nan_bit = _mm256_set1_epi16(0x4000);
    const __m256 factor = _mm256_set1_ps(scale * 256.0F);
    for (size_t i = 0; i < num; i += STEP) {
        __m128i codes = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        __m256i wide = _mm256_cvtepu8_epi16(codes);
        __m256i magnitude = _mm256_and_si256(_mm256_slli_epi16(wide, 7), magnitude_mask);
        __m256i sign = _mm256_and_si256(_mm256_slli_epi16(wide, 8), sign_mask);
        __m256i is_nan = _mm256_cmpeq_epi16(magnitude, magnitude_mask);
        __m256i half = _mm256_or_si256(_mm256_or_si256(magnitude, sign),
                                       _mm256_and_si256(is_nan, nan_bit));
        __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
        __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
        _mm256_store_ps(to + i, _mm256_mul_ps(low, factor));
        _mm256_store_ps(to + i + 8, _mm256_mul_ps(high, factor));
    }
}

static void from_groups(const unsigned char *row, size_t latent_dim, size_t rope_dim,
                        float *to)
{
    const unsigned char *scales = row + latent_dim;
    for (size_t d = 0; d < latent_dim; d += GROUP) {
        float scale;
        memcpy(&scale, scales + d / GROUP * sizeof scale, sizeof scale);
        from_e4m3(row + d, GROUP, scale, to + d);
    }
    from_bf16(scales + latent_dim / GROUP * sizeof(float), rope_dim, to + latent_dim);
}

void mlai_numbers_decode_avx2(mla_dtype dtype, const unsigned char *from, size_t num,
                              float scale, float *to)
{
    switch (dtype) {
    case MLA_F32:
        copy_f32(from, num, to);
        return;
    case MLA_BF16:
        from_bf16(from, num, to);
        return;
    case MLA_E4M3:
        from_e4m3(from, num, scale, to);
        return;
    }
}

void mlai_row_decode_avx2(const mlai_kv_view *kv, const unsigned char *row, float *to)
{
    size_t latent_dim = (size_t)kv->latent_dim;
    size_t rope_dim = (size_t)kv->rope_dim;
    switch (kv->format) {
    case MLA_KV_F32:
        copy_f32(row, latent_dim + rope_dim, to);
        return;
    case MLA_KV_BF16:
        from_bf16(row, latent_dim + rope_dim, to);
        return;
    case MLA_KV_FP8:
        from_e4m3(row, latent_dim + rope_dim, kv->scale, to);
        return;
    case MLA_KV_FP8_G128:
        from_groups(row, latent_dim, rope_dim, to);
        return;
    }
}
