/* blocks_avx2.c - scores and values of a tile in blocks of registers: see blocks_avx2.h. */
#include "attention/cpu/blocks_avx2.h"

#include <immintrin.h>

enum {
    LANES = 8,
    MAX_SUMS = 12,    /* of 16 registers; the others hold operands */
    QUERY_GROUP = 12, /* queries that stay in the first cache over all tokens of a tile */
    TOKEN_STEP = 8,
    COLUMN_STRIP = 64, /* value columns that stay there over all queries */
};

#define FORCE_INLINE static inline __attribute__((always_inline))

/* [s0 s1 s2 s3] from four vectors of lanes. */
FORCE_INLINE __m128 sum_lanes(const __m256 *sums)
{
    __m256 pairs = _mm256_hadd_ps(sums[0], sums[1]);
    __m256 more_pairs = _mm256_hadd_ps(sums[2], sums[3]);
    __m256 fours = _mm256_hadd_ps(pairs, more_pairs);
    return _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
}

/* num_q queries by num_t tokens (a multiple of 4); both constants where it is used. */
FORCE_INLINE void score_block(const mlai_scores *job, size_t q, size_t t,
                              const size_t num_q, const size_t num_t)
{
    const float *query = job->query + q * job->width;
    const float *keys = job->keys + t * job->key_stride;
    __m256 sums[MAX_SUMS];
#pragma GCC unroll 12
    for (size_t i = 0; i < num_q * num_t; i++) {
        sums[i] = _mm256_setzero_ps();
    }
    for (size_t d = 0; d < job->width; d += LANES) {
        __m256 from_query[3];
#pragma GCC unroll 3
        for (size_t i = 0; i < num_q; i++) {
            from_query[i] = _mm256_loadu_ps(query + i * job->width + d);
        }
#pragma GCC unroll 8
        for (size_t j = 0; j < num_t; j++) {
            __m256 key = _mm256_load_ps(keys + j * job->key_stride + d);
#pragma GCC unroll 3
            for (size_t i = 0; i < num_q; i++) {
                sums[i * num_t + j] =
                    _mm256_fmadd_ps(from_query[i], key, sums[i * num_t + j]);
            }
        }
    }
#pragma GCC unroll 3
    for (size_t i = 0; i < num_q; i++) {
#pragma GCC unroll 2
        for (size_t j = 0; j < num_t; j += 4) {
            _mm_store_ps(job->score + (q + i) * MLAI_TILE_TOKENS + t + j,
                         sum_lanes(sums + i * num_t + j));
        }
    }
}

/* All queries of a group against eight tokens: by threes, the last four as two twos. */
static void score_tokens(const mlai_scores *job, size_t q, size_t end, size_t t)
{
    if (end - q == 1) {
        score_block(job, q, t, 1, 8);
        return;
    }
    for (size_t half = t; half < t + TOKEN_STEP; half += 4) {
        size_t at = q;
        for (; end - at == 3 || end - at >= 5; at += 3) {
            score_block(job, at, half, 3, 4);
        }
        for (; at < end; at += 2) {
            score_block(job, at, half, 2, 4);
        }
    }
}

void mlai_scores_avx2(const mlai_scores *job)
{
    size_t first = (size_t)job->span.first / TOKEN_STEP * TOKEN_STEP;
    for (size_t q = 0; q < job->num_queries;) {
        size_t left = job->num_queries - q;
        size_t num = left == QUERY_GROUP + 1 ? QUERY_GROUP - 1
                     : left < QUERY_GROUP    ? left
                                             : QUERY_GROUP;
        for (size_t t = first; t < (size_t)job->span.last; t += TOKEN_STEP) {
            score_tokens(job, q, q + num, t);
        }
        q += num;
    }
}

/* num_q queries by num_v vectors of columns, over the tokens of the span. */
FORCE_INLINE void value_block(const mlai_values *job, size_t q, size_t column,
                              const size_t num_q, const size_t num_v)
{
    __m256 sums[MAX_SUMS];
#pragma GCC unroll 12
    for (size_t i = 0; i < num_q * num_v; i++) {
        sums[i] = _mm256_setzero_ps();
    }
    const float *p = job->p + q * MLAI_TILE_TOKENS;
    const float *values = job->values + column;
    for (size_t t = (size_t)job->span.first; t < (size_t)job->span.last; t++) {
        const float *value = values + t * job->value_stride;
#pragma GCC unroll 6
        for (size_t i = 0; i < num_q; i++) {
            __m256 weight = _mm256_broadcast_ss(p + i * MLAI_TILE_TOKENS + t);
#pragma GCC unroll 8
            for (size_t j = 0; j < num_v; j++) {
                sums[i * num_v + j] = _mm256_fmadd_ps(
                    weight, _mm256_load_ps(value + j * LANES), sums[i * num_v + j]);
            }
        }
    }
#pragma GCC unroll 6
    for (size_t i = 0; i < num_q; i++) {
        __m256 shrink = _mm256_broadcast_ss(job->shrink + q + i);
        float *out = job->out[q + i] + column;
#pragma GCC unroll 8
        for (size_t j = 0; j < num_v; j++) {
            __m256 old = _mm256_loadu_ps(out + j * LANES);
            _mm256_storeu_ps(out + j * LANES,
                             _mm256_fmadd_ps(old, shrink, sums[i * num_v + j]));
        }
    }
}

static void value_six(const mlai_values *job, size_t q, size_t column)
{
    for (size_t v = 0; v < COLUMN_STRIP; v += (size_t)2 * LANES) {
        value_block(job, q, column + v, 6, 2);
    }
}

static void value_four(const mlai_values *job, size_t q, size_t column)
{
    for (size_t v = 0; v < COLUMN_STRIP; v += (size_t)2 * LANES) {
        value_block(job, q, column + v, 4, 2);
    }
}

static void value_two(const mlai_values *job, size_t q, size_t column)
{
    for (size_t v = 0; v < COLUMN_STRIP; v += (size_t)4 * LANES) {
        value_block(job, q, column + v, 2, 4);
    }
}

/* By sixes and fours, which keep both multipliers busy; a two or a one at the end. */
static void value_strip(const mlai_values *job, size_t column)
{
    size_t q = 0;
    size_t left = job->num_queries;
    for (; left == 6 || left >= 9 || left == 7; left -= 6, q += 6) {
        value_six(job, q, column);
    }
    for (; left >= 4; left -= 4, q += 4) {
        value_four(job, q, column);
    }
    for (; left >= 2; left -= 2, q += 2) {
        value_two(job, q, column);
    }
    if (left == 1) {
        value_block(job, q, column, 1, 8);
    }
}

void mlai_values_avx2(const mlai_values *job)
{
    for (size_t column = 0; column < job->latent_dim; column += COLUMN_STRIP) {
        value_strip(job, column);
    }
}
