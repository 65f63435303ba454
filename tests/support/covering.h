/* covering.h - a small set of cases in which every pair of values of any two factors occurs
 * (a pairwise covering array), made greedily. */
#ifndef TEST_COVERING_H
#define TEST_COVERING_H

enum { COVERING_MAX_FACTORS = 12, COVERING_MAX_VALUES = 16, COVERING_MAX_CASES = 512 };

typedef struct covering {
    int num_cases;
    int value[COVERING_MAX_CASES][COVERING_MAX_FACTORS]; /* index of each factor's value */
} covering;

/* num_values [num_factors]. The same for the same input. */
void covering_make(const int *num_values, int num_factors, covering *out);

/* Pairs of values that no case has: 0, or the making is wrong. */
int covering_missing(const covering *cases, const int *num_values, int num_factors);

#endif
