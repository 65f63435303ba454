/* merge_parts.c - the merge of partials in double: see merge_parts.h. */
#include "attention/merge_parts.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

static double largest(const float *value, int32_t num_values)
{
    double most = -(double)INFINITY;
    for (int32_t i = 0; i < num_values; i++) {
        most = (double)value[i] > most ? (double)value[i] : most;
    }
    return most;
}

static float weighted_sum(const float *part, const float *part_lse, int32_t num_parts,
                          int32_t dim, double lse)
{
    double sum = 0;
    for (int32_t i = 0; i < num_parts; i++) {
        if (part_lse[i] > -INFINITY) {
            sum += exp((double)part_lse[i] - lse) * (double)part[(size_t)i * (size_t)dim];
        }
    }
    return (float)sum;
}

void mlai_merge_parts(const float *part, const float *part_lse, int32_t num_parts,
                      int32_t dim, float *out, float *lse)
{
    double most = largest(part_lse, num_parts);
    bool is_empty = isinf(most) && most < 0;
    double total = 0;
    for (int32_t i = 0; i < num_parts && !is_empty; i++) {
        total += exp((double)part_lse[i] - most);
    }
    double sum = is_empty ? most : most + log(total);
    for (int32_t d = 0; d < dim; d++) {
        out[d] = is_empty ? 0.0F : weighted_sum(part + d, part_lse, num_parts, dim, sum);
    }
    *lse = (float)sum;
}
