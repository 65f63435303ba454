/* gemm_c.c - both products in portable C: what the others are measured against. */
#include "model/cpu/load.h"
#include "model/cpu/operators.h"

enum { LANES = 8 };

/* lane: [8] partial sums -> their sum, in the order of every instruction set. */
static float sum_lanes(const float lane[LANES])
{
    float half[4];
    for (int i = 0; i < 4; i++) {
        half[i] = lane[i] + lane[i + 4];
    }
    return (half[0] + half[2]) + (half[1] + half[3]);
}

static float dot_bf16(const unsigned char *w, const float *x, size_t depth)
{
    float lane[LANES] = {0};
    size_t k = 0;
    for (; k + LANES <= depth; k += LANES) {
        for (size_t i = 0; i < LANES; i++) {
            lane[i] += load_bf16(w, k + i) * x[k + i];
        }
    }
    float sum = sum_lanes(lane);
    for (; k < depth; k++) {
        sum += load_bf16(w, k) * x[k];
    }
    return sum;
}

static float dot_f32(const unsigned char *w, const float *x, size_t depth)
{
    float lane[LANES] = {0};
    size_t k = 0;
    for (; k + LANES <= depth; k += LANES) {
        for (size_t i = 0; i < LANES; i++) {
            lane[i] += load_f32(w, k + i) * x[k + i];
        }
    }
    float sum = sum_lanes(lane);
    for (; k < depth; k++) {
        sum += load_f32(w, k) * x[k];
    }
    return sum;
}

void gemm_nt_c(const gemm *job, const gemm_tile *tile)
{
    size_t depth = (size_t)job->depth;
    for (int32_t n = tile->out_begin; n < tile->out_end; n++) {
        const unsigned char *w = gemm_w(job, n);
        for (int32_t row = tile->row_begin; row < tile->row_end; row++) {
            const float *x = gemm_x(job, row);
            float *y = gemm_y(job, row) + (size_t)n * job->y_out_stride;
            float dot =
                job->w_dtype == MLA_F32 ? dot_f32(w, x, depth) : dot_bf16(w, x, depth);
            *y = job->is_added ? *y + dot : dot;
        }
    }
}

static void add_row(const gemm *job, int32_t k, float x, const gemm_tile *tile, float *y)
{
    const unsigned char *w = gemm_w(job, k);
    size_t begin = (size_t)tile->out_begin;
    size_t end = (size_t)tile->out_end;
    if (job->w_dtype == MLA_F32) {
        for (size_t n = begin; n < end; n++) {
            y[n] += x * load_f32(w, n);
        }
        return;
    }
    for (size_t n = begin; n < end; n++) {
        y[n] += x * load_bf16(w, n);
    }
}

void gemm_nn_c(const gemm *job, const gemm_tile *tile)
{
    for (int32_t row = tile->row_begin; row < tile->row_end; row++) {
        const float *x = gemm_x(job, row);
        float *y = gemm_y(job, row);
        for (int32_t n = tile->out_begin; !job->is_added && n < tile->out_end; n++) {
            y[n] = 0.0F;
        }
        for (int32_t k = 0; k < job->depth; k++) {
            add_row(job, k, x[k], tile, y);
        }
    }
}
