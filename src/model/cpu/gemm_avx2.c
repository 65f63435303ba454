/* gemm_avx2.c - both products with AVX2 and FMA, in register tiles of some weight rows times
 * some tokens. Every output element has one accumulator whatever the tile, so tiles differ
 * in speed only: few tokens take many weight rows, to have enough independent chains. */
#include <immintrin.h>

#include "model/cpu/load.h"
#include "model/cpu/operators.h"

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

enum { LANES = 8, MAX_OUTS = 8, MAX_TOKENS = 4, OUT_GROUP = 24 };

INLINE __m256 load_8(const unsigned char *w, size_t k, bool is_bf16)
{
    if (!is_bf16) {
        return _mm256_loadu_ps((const float *)(const void *)(w + k * sizeof(float)));
    }
    __m128i bits = _mm_loadu_si128((const void *)(w + k * sizeof(uint16_t)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

INLINE float sum_lanes(__m256 v)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

INLINE void store_dot(const gemm *job, int32_t row, int32_t n, float dot)
{
    float *y = gemm_y(job, row) + (size_t)n * job->y_out_stride;
    *y = job->is_added ? *y + dot : dot;
}

/* outs, tokens, is_bf16: constants where this is inlined. */
INLINE void nt_tile(const gemm *job, int32_t row, int32_t n, int outs, int tokens,
                    bool is_bf16)
{
    const unsigned char *w[MAX_OUTS];
    const float *x[MAX_TOKENS];
    __m256 acc[MAX_OUTS][MAX_TOKENS];
    UNROLL for (int o = 0; o < outs; o++)
    {
        w[o] = gemm_w(job, n + o);
        UNROLL for (int t = 0; t < tokens; t++)
        {
            acc[o][t] = _mm256_setzero_ps();
        }
    }
    UNROLL for (int t = 0; t < tokens; t++)
    {
        x[t] = gemm_x(job, row + t);
    }
    size_t depth = (size_t)job->depth;
    size_t k = 0;
    for (; k + LANES <= depth; k += LANES) {
        __m256 xk[MAX_TOKENS];
        UNROLL for (int t = 0; t < tokens; t++)
        {
            xk[t] = _mm256_loadu_ps(x[t] + k);
        }
        UNROLL for (int o = 0; o < outs; o++)
        {
            __m256 wk = load_8(w[o], k, is_bf16);
            UNROLL for (int t = 0; t < tokens; t++)
            {
                acc[o][t] = _mm256_fmadd_ps(wk, xk[t], acc[o][t]);
            }
        }
    }
    UNROLL for (int o = 0; o < outs; o++)
    {
        UNROLL for (int t = 0; t < tokens; t++)
        {
            float dot = sum_lanes(acc[o][t]);
            for (size_t i = k; i < depth; i++) {
                dot += load_weight(w[o], is_bf16 ? MLA_BF16 : MLA_F32, i) * x[t][i];
            }
            store_dot(job, row + t, n + o, dot);
        }
    }
}

/* Weight rows [begin, end) for `tokens` rows from `row` on. */
INLINE void nt_outs(const gemm *job, int32_t row, int32_t begin, int32_t end, int outs,
                    int tokens, bool is_bf16)
{
    int32_t n = begin;
    for (; n + outs <= end; n += outs) {
        nt_tile(job, row, n, outs, tokens, is_bf16);
    }
    for (; n < end; n++) {
        nt_tile(job, row, n, 1, tokens, is_bf16);
    }
}

INLINE void nt_rows(const gemm *job, const gemm_tile *tile, int32_t begin, int32_t end,
                    bool is_bf16)
{
    int32_t row = tile->row_begin;
    for (; row + 4 <= tile->row_end; row += 4) {
        nt_outs(job, row, begin, end, 3, 4, is_bf16);
    }
    if (row + 2 <= tile->row_end) {
        nt_outs(job, row, begin, end, 4, 2, is_bf16);
        row += 2;
    }
    if (row < tile->row_end) {
        nt_outs(job, row, begin, end, 8, 1, is_bf16);
    }
}

void gemm_nt_avx2(const gemm *job, const gemm_tile *tile)
{
    for (int32_t n = tile->out_begin; n < tile->out_end; n += OUT_GROUP) {
        int32_t end = n + OUT_GROUP < tile->out_end ? n + OUT_GROUP : tile->out_end;
        if (job->w_dtype == MLA_F32) {
            nt_rows(job, tile, n, end, false);
        } else {
            nt_rows(job, tile, n, end, true);
        }
    }
}

/* vecs * 8 outputs from n on. */
INLINE void nn_tile(const gemm *job, int32_t row, int32_t n, int vecs, int tokens,
                    bool is_bf16)
{
    const float *x[MAX_TOKENS];
    __m256 acc[MAX_OUTS][MAX_TOKENS];
    UNROLL for (int t = 0; t < tokens; t++)
    {
        x[t] = gemm_x(job, row + t);
        const float *y = gemm_y(job, row + t) + n;
        UNROLL for (int v = 0; v < vecs; v++)
        {
            acc[v][t] = job->is_added ? _mm256_loadu_ps(y + (size_t)v * LANES)
                                      : _mm256_setzero_ps();
        }
    }
    const unsigned char *w = gemm_w(job, 0);
    size_t w_bytes = job->w_stride * dtype_bytes(job->w_dtype);
    for (int32_t k = 0; k < job->depth; k++, w += w_bytes) {
        __m256 xk[MAX_TOKENS];
        UNROLL for (int t = 0; t < tokens; t++)
        {
            xk[t] = _mm256_broadcast_ss(x[t] + k);
        }
        UNROLL for (int v = 0; v < vecs; v++)
        {
            __m256 wk = load_8(w, (size_t)n + (size_t)v * LANES, is_bf16);
            UNROLL for (int t = 0; t < tokens; t++)
            {
                acc[v][t] = _mm256_fmadd_ps(wk, xk[t], acc[v][t]);
            }
        }
    }
    UNROLL for (int t = 0; t < tokens; t++)
    {
        float *y = gemm_y(job, row + t) + n;
        UNROLL for (int v = 0; v < vecs; v++)
        {
            _mm256_storeu_ps(y + (size_t)v * LANES, acc[v][t]);
        }
    }
}

/* One output: the same chain as a lane of a tile. */
static void nn_single(const gemm *job, int32_t row, int32_t n)
{
    const float *x = gemm_x(job, row);
    float *y = gemm_y(job, row) + n;
    __m128 acc = job->is_added ? _mm_set_ss(*y) : _mm_setzero_ps();
    for (int32_t k = 0; k < job->depth; k++) {
        __m128 w = _mm_set_ss(load_weight(gemm_w(job, k), job->w_dtype, (size_t)n));
        acc = _mm_fmadd_ss(w, _mm_set_ss(x[k]), acc);
    }
    *y = _mm_cvtss_f32(acc);
}

INLINE void nn_outs(const gemm *job, const gemm_tile *tile, int32_t row, int vecs,
                    int tokens, bool is_bf16)
{
    int32_t n = tile->out_begin;
    for (; n + vecs * LANES <= tile->out_end; n += vecs * LANES) {
        nn_tile(job, row, n, vecs, tokens, is_bf16);
    }
    for (; n + LANES <= tile->out_end; n += LANES) {
        nn_tile(job, row, n, 1, tokens, is_bf16);
    }
    for (; n < tile->out_end; n++) {
        for (int32_t t = 0; t < tokens; t++) {
            nn_single(job, row + t, n);
        }
    }
}

INLINE void nn_rows(const gemm *job, const gemm_tile *tile, bool is_bf16)
{
    int32_t row = tile->row_begin;
    for (; row + 4 <= tile->row_end; row += 4) {
        nn_outs(job, tile, row, 2, 4, is_bf16);
    }
    if (row + 2 <= tile->row_end) {
        nn_outs(job, tile, row, 4, 2, is_bf16);
        row += 2;
    }
    if (row < tile->row_end) {
        nn_outs(job, tile, row, 8, 1, is_bf16);
    }
}

void gemm_nn_avx2(const gemm *job, const gemm_tile *tile)
{
    if (job->w_dtype == MLA_F32) {
        nn_rows(job, tile, false);
    } else {
        nn_rows(job, tile, true);
    }
}
