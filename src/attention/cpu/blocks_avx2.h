/* blocks_avx2.h - the two matrix products of attention over one tile of keys.
 *
 * Each element of a product is summed in one order, whatever block it falls into: a score
 * in eight lanes along D, then ((0+1)+(2+3))+((4+5)+(6+7)); an output token by token
 * over the tile from 0, and then added to what earlier tiles left. */
#ifndef MLA_ATTENTION_CPU_BLOCKS_AVX2_H
#define MLA_ATTENTION_CPU_BLOCKS_AVX2_H

#include <stddef.h>

#include "attention/cpu/tile.h"

/* Scores of tokens [first & -8, last rounded up to 8): rows of `keys` there must be
 * readable numbers, even those whose scores mean nothing. */
typedef struct mlai_scores {
    const float *query; /* [num_queries][width] */
    size_t num_queries;
    const float *keys; /* [MLAI_TILE_TOKENS][key_stride] */
    size_t key_stride;
    size_t width; /* D+R, a multiple of 16 */
    mlai_tile_span span;
    float *score; /* [num_queries][MLAI_TILE_TOKENS] */
} mlai_scores;

void mlai_scores_avx2(const mlai_scores *job);

/* out[q] = out[q] * shrink[q] + sum over the span's tokens of p[q][t] * values[t]. */
typedef struct mlai_values {
    const float *p;      /* [num_queries][MLAI_TILE_TOKENS] */
    const float *shrink; /* [num_queries] */
    size_t num_queries;
    const float *values; /* [MLAI_TILE_TOKENS][value_stride] */
    size_t value_stride;
    size_t latent_dim; /* a multiple of 64 */
    mlai_tile_span span;
    float *const *out; /* [num_queries] of [D] */
} mlai_values;

void mlai_values_avx2(const mlai_values *job);

#endif
