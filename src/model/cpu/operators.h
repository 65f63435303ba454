/* operators.h - what an instruction set provides for the forward pass, in one table a
 * level. Activations are f32; weights are bf16 or f32.
 *
 * Invariance: the order of the operations that make one output element depends on the
 * element's depth and the instruction set only: not on the number of rows, the tile it is
 * computed in, or the threads. */
#ifndef MLA_MODEL_CPU_OPERATORS_H
#define MLA_MODEL_CPU_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/weights.h"

/* One product. Row r of x is at x + x_rows[r] * x_stride, or x + r * x_stride where x_rows
 * is NULL; likewise y. Element n of row r of y is y_out_stride * n further. */
typedef struct gemm {
    const void *w; /* NT: [num_out][depth]; NN: [depth][num_out]; rows w_stride apart */
    size_t w_stride;
    mla_dtype w_dtype; /* MLA_BF16 or MLA_F32 */
    int32_t num_out, depth;
    const float *x; /* [num_rows][depth] */
    size_t x_stride;
    const int32_t *x_rows;
    float *y; /* [num_rows][num_out] */
    size_t y_stride, y_out_stride;
    const int32_t *y_rows;
    int32_t num_rows;
    bool is_added;      /* y += the product instead of y = */
    int64_t first_tile; /* of gemm_run: written there */
} gemm;

typedef struct gemm_tile {
    int32_t row_begin, row_end, out_begin, out_end;
} gemm_tile;

typedef struct operators {
    const char *name; /* "c", "avx2" */
    mla_isa isa;
    /* y = x w^T: a sum of depth in 8 interleaved partial sums. */
    void (*gemm_nt)(const gemm *job, const gemm_tile *tile);
    /* y = x w: a sum of depth in one chain, which begins at y where is_added.
     * y_out_stride is 1. */
    void (*gemm_nn)(const gemm *job, const gemm_tile *tile);
    /* y[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i]. y may be x. */
    void (*rms_norm)(const float *x, const vector *weight, float eps, float *y);
    /* gate[i] = silu(gate[i]) * up[i] */
    void (*silu_mul)(float *gate, const float *up, size_t num);
    /* y[i] += scale * x[i] */
    void (*add_scaled)(float *y, const float *x, float scale, size_t num);
    float (*max_of)(const float *x, int32_t num); /* num >= 1 */
    /* x[i] = exp(scale * x[i] - max); returns their sum. */
    float (*exp_sum)(float *x, int32_t num, float scale, float max);
} operators;

/* The best level of isa_mask, which has at least MLA_ISA_C; NULL otherwise. */
const operators *operators_best(uint32_t isa_mask);

extern const operators operators_c;
extern const operators operators_avx2; /* only call where the CPU has it */

/* The parts of the two tables. */
void gemm_nt_c(const gemm *job, const gemm_tile *tile);
void gemm_nn_c(const gemm *job, const gemm_tile *tile);
void gemm_nt_avx2(const gemm *job, const gemm_tile *tile);
void gemm_nn_avx2(const gemm *job, const gemm_tile *tile);

static inline size_t dtype_bytes(mla_dtype dtype)
{
    return dtype == MLA_F32 ? sizeof(float) : sizeof(uint16_t);
}

static inline const float *gemm_x(const gemm *job, int32_t row)
{
    return job->x + (size_t)(job->x_rows ? job->x_rows[row] : row) * job->x_stride;
}

static inline float *gemm_y(const gemm *job, int32_t row)
{
    return job->y + (size_t)(job->y_rows ? job->y_rows[row] : row) * job->y_stride;
}

static inline const unsigned char *gemm_w(const gemm *job, int32_t row)
{
    return (const unsigned char *)job->w +
           (size_t)row * job->w_stride * dtype_bytes(job->w_dtype);
}

#endif
