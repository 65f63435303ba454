/* rows_c.c - what is done to one row at a time, in portable C, and C's table. */
#include <math.h>

#include "model/cpu/load.h"
#include "model/cpu/operators.h"

static void rms_norm_c(const float *x, const vector *weight, float eps, float *y)
{
    size_t num = (size_t)weight->num;
    double sum = 0.0;
    for (size_t i = 0; i < num; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    float scale = 1.0F / sqrtf((float)(sum / (double)num) + eps);
    for (size_t i = 0; i < num; i++) {
        y[i] = x[i] * scale * load_weight(weight->data, weight->dtype, i);
    }
}

static void silu_mul_c(float *gate, const float *up, size_t num)
{
    for (size_t i = 0; i < num; i++) {
        gate[i] = gate[i] / (1.0F + expf(-gate[i])) * up[i];
    }
}

static void add_scaled_c(float *y, const float *x, float scale, size_t num)
{
    for (size_t i = 0; i < num; i++) {
        y[i] += scale * x[i];
    }
}

static float max_of_c(const float *x, int32_t num)
{
    float best = x[0];
    for (int32_t i = 1; i < num; i++) {
        best = x[i] > best ? x[i] : best;
    }
    return best;
}

static float exp_sum_c(float *x, int32_t num, float scale, float max)
{
    float sum = 0.0F;
    for (int32_t i = 0; i < num; i++) {
        x[i] = expf(scale * x[i] - max);
        sum += x[i];
    }
    return sum;
}

const operators operators_c = {
    .name = "c",
    .isa = MLA_ISA_C,
    .gemm_nt = gemm_nt_c,
    .gemm_nn = gemm_nn_c,
    .rms_norm = rms_norm_c,
    .silu_mul = silu_mul_c,
    .add_scaled = add_scaled_c,
    .max_of = max_of_c,
    .exp_sum = exp_sum_c,
};
