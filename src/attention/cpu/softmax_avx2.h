/* softmax_avx2.h - one step of the running softmax for eight-lane machines. */
#ifndef MLA_ATTENTION_CPU_SOFTMAX_AVX2_H
#define MLA_ATTENTION_CPU_SOFTMAX_AVX2_H

#include <stdint.h>

/* score: [MLAI_TILE_TOKENS], 32-byte aligned, in: dot products; out: exp(scale * score -
 * new top), exactly 0 where `counted` has no bit. *top and *weight are raised; the result
 * is the factor by which sums made under the old top shrink. */
float mlai_softmax_step_avx2(float *score, uint64_t counted, float scale, float *top,
                             float *weight);

#endif
