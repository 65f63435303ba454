/* pairwise.h - few rows in which every pair of values of every two factors occurs.
 *
 *   const int32_t num_values[] = {13, 10, 6};
 *   pairwise plan = pairwise_plan(3, num_values, &random);
 *   ... plan.row[i][factor] is the number of a value ...
 *   pairwise_drop(&plan); */
#ifndef TEST_PAIRWISE_H
#define TEST_PAIRWISE_H

#include "support/random.h"

enum { PAIRWISE_MAX_FACTORS = 16, PAIRWISE_MAX_VALUES = 128 };

typedef struct pairwise {
    int32_t num_factors, num_rows;
    unsigned char (*row)[PAIRWISE_MAX_FACTORS]; /* [num_rows][num_factors] */
} pairwise;

/* num_values [num_factors]: their sum is at most PAIRWISE_MAX_VALUES. */
pairwise pairwise_plan(int32_t num_factors, const int32_t *num_values, rng *random);
void pairwise_drop(pairwise *plan);

/* Pairs that no row of the first num_rows has. */
int64_t pairwise_num_missing(const pairwise *plan, const int32_t *num_values,
                             int32_t num_rows);

#endif
