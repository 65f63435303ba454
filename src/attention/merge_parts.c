/* merge_parts.c - the merge of partials in double: see merge_parts.h. */
#include "attention/merge_parts.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { COLUMNS = 64 /* summed together: a weight is the same for all */ };

static double largest(const float *value, int32_t num_values)
{
    double most = -(double)INFINITY;
    for (int32_t i = 0; i < num_values; i++) {
        most = (double)value[i] > most ? (double)value[i] : most;
    }
    return most;
}

/* Columns [0, num) of out; each is summed part by part. */
static void add_weighted(const float *part, const float *part_lse, int32_t num_parts,
                         int32_t dim, double lse, double *sum, int32_t num)
{
    for (int32_t i = 0; i < num_parts; i++) {
        if (part_lse[i] > -INFINITY) {
            double weight = exp((double)part_lse[i] - lse);
            const float *from = part + (size_t)i * (size_t)dim;
            for (int32_t d = 0; d < num; d++) {
                sum[d] += weight * (double)from[d];
            }
        }
    }
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
    for (int32_t first = 0; first < dim; first += COLUMNS) {
        double column[COLUMNS] = {0};
        int32_t num = dim - first < COLUMNS ? dim - first : COLUMNS;
        if (!is_empty) {
            add_weighted(part + first, part_lse, num_parts, dim, sum, column, num);
        }
        for (int32_t d = 0; d < num; d++) {
            out[first + d] = (float)column[d];
        }
    }
    *lse = (float)sum;
}
