/* merge_parts.h - what merging partial attention means, in double precision: the reference of
 * every kernel's merge and of the merge over ranks.
 *
 * A part is a normalised output and the natural logarithm of its weight. A part of weight 0
 * (lse -inf) is never read; where all are, the result is 0 and -inf. */
#ifndef MLA_ATTENTION_MERGE_PARTS_H
#define MLA_ATTENTION_MERGE_PARTS_H

#include <stdint.h>

/* part [num_parts][dim], part_lse [num_parts] -> out [dim], *lse. out must not overlap. */
void mlai_merge_parts(const float *part, const float *part_lse, int32_t num_parts,
                      int32_t dim, float *out, float *lse);

#endif
