/* gemm_run.h - products on the threads of a pool. */
#ifndef MLA_MODEL_CPU_GEMM_RUN_H
#define MLA_MODEL_CPU_GEMM_RUN_H

#include "device/pool.h"
#include "model/cpu/operators.h"

typedef enum gemm_form { GEMM_NT, GEMM_NN } gemm_form;

/* Runs all jobs, which write different places, as one set of tiles. jobs: first_tile is
 * written. Small work stays on the calling thread. */
void gemm_run(const operators *ops, mlai_pool *pool, gemm_form form, gemm *jobs,
              int32_t num_jobs);

/* y [num_rows][w->num_out] = x [num_rows][w->num_in] w^T, both dense. */
gemm gemm_of_matrix(const matrix *w, const float *x, int32_t num_rows, float *y);

#endif
