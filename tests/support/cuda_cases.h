/* cuda_cases.h - drawn attention problems for the CUDA kernels. */
#ifndef TEST_CUDA_CASES_H
#define TEST_CUDA_CASES_H

#include "support/attend_case.h"

/* The `index`-th case of a seed: dimensions, format, heads, pages, lengths, mask. */
void gpu_case_draw(attend_case *c, uint64_t seed, int index);
void gpu_case_shape(attend_case *c, uint64_t seed, int index); /* its caps and batch only */

#endif
