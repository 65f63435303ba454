/* merge.h - the union of two parts of one attention, for every level. */
#ifndef MLA_ATTENTION_CPU_MERGE_H
#define MLA_ATTENTION_CPU_MERGE_H

#include <stdint.h>

/* As mlai_cpu_kernels.merge. Commutative to the bit. */
void mlai_attend_merge(float *out, float *lse, const float *part, float part_lse,
                       int32_t latent_dim);

#endif
