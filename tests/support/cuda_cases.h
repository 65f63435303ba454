/* cuda_cases.h - drawn attention problems for the CUDA kernels, and what they are allowed to get
 * wrong. */
#ifndef TEST_CUDA_CASES_H
#define TEST_CUDA_CASES_H

#include "support/attend_case.h"

/* The `index`-th case of a seed: dimensions, format, heads, pages, lengths, mask. */
void gpu_case_draw(attend_case *c, uint64_t seed, int index);
void gpu_case_shape(attend_case *c, uint64_t seed, int index); /* its caps and batch only */

typedef struct gpu_verdict {
    int64_t num_wrong;
    double worst_share; /* of the bound */
    char first_wrong[200];
} gpu_verdict;

/* Against the oracle, as attend_case_judge does for CUDA. */
gpu_verdict gpu_case_judge(const attend_case *c, const float *out, const float *lse);

#endif
