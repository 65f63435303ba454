/* merge.c - two normalised outputs become one: each is weighed by exp(its lse). The larger
 * weight is 1, so nothing overflows; products are rounded one by one, so that swapping the
 * parts changes no bit. */
#include "attention/cpu/merge.h"

#include <math.h>
#include <string.h>

void mlai_attend_merge(float *out, float *lse, const float *part, float part_lse,
                       int32_t latent_dim)
{
    if (part_lse == -INFINITY) {
        return;
    }
    if (*lse == -INFINITY) {
        memcpy(out, part, (size_t)latent_dim * sizeof *out);
        *lse = part_lse;
        return;
    }
    float top = *lse > part_lse ? *lse : part_lse;
    float weight = expf(*lse - top);
    float part_weight = expf(part_lse - top);
    float sum = weight + part_weight;
    for (int32_t d = 0; d < latent_dim; d++) {
        out[d] = (out[d] * weight + part[d] * part_weight) / sum;
    }
    *lse = top + logf(sum);
}
