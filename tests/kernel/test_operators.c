/* The operators of the forward pass, level by level: against sums in double precision, and
 * to the bit between tiles, numbers of rows and threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/convert.h"
#include "device/cpu.h"
#include "model/cpu/gemm_run.h"
#include "support/levels.h"
#include "support/random.h"

enum { MAX_ROWS = 70, MAX_OUTS = 131, MAX_DEPTH = 300, MAX_Y = MAX_ROWS * MAX_OUTS };

static const operators *ops; /* of the level under test */

static const int32_t depths[] = {1, 7, 8, 9, 64, 100, 256, 300};
static const int32_t outs[] = {1, 2, 7, 8, 24, 47, 48, 49, 131};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* One product's operands, filled at random. */
typedef struct operands {
    float w_f32[MAX_OUTS * MAX_DEPTH];
    uint16_t w_bf16[MAX_OUTS * MAX_DEPTH];
    float x[MAX_ROWS * MAX_DEPTH];
    float y[MAX_Y], expected[MAX_Y];
    rng random;
} operands;

static operands data;

static int start(void **state)
{
    (void)state;
    data.random = rng_start("operators");
    for (size_t i = 0; i < LENGTH(data.w_f32); i++) {
        data.w_bf16[i] = mlai_bf16_from_f32((float)rng_normal(&data.random));
        data.w_f32[i] = (float)rng_normal(&data.random);
    }
    for (size_t i = 0; i < LENGTH(data.x); i++) {
        data.x[i] = (float)rng_normal(&data.random);
    }
    return 0;
}

static gemm job_of(gemm_form form, mla_dtype dtype, int32_t num_out, int32_t depth,
                   int32_t num_rows)
{
    return (gemm){
        .w = dtype == MLA_F32 ? (const void *)data.w_f32 : (const void *)data.w_bf16,
        .w_stride = (size_t)(form == GEMM_NT ? depth : num_out),
        .w_dtype = dtype,
        .num_out = num_out,
        .depth = depth,
        .x = data.x,
        .x_stride = (size_t)depth,
        .y = data.y,
        .y_stride = (size_t)num_out,
        .y_out_stride = 1,
        .num_rows = num_rows,
    };
}

static void run_whole(gemm_form form, const gemm *job)
{
    gemm_tile tile = {0, job->num_rows, 0, job->num_out};
    if (form == GEMM_NT) {
        ops->gemm_nt(job, &tile);
    } else {
        ops->gemm_nn(job, &tile);
    }
}

static double weight_at(gemm_form form, const gemm *job, int32_t n, int32_t k)
{
    size_t index = form == GEMM_NT ? (size_t)n * job->w_stride + (size_t)k
                                   : (size_t)k * job->w_stride + (size_t)n;
    return job->w_dtype == MLA_F32 ? (double)data.w_f32[index]
                                   : (double)mlai_f32_from_bf16(data.w_bf16[index]);
}

static void check_against_double(gemm_form form, const gemm *job)
{
    for (int32_t row = 0; row < job->num_rows; row++) {
        for (int32_t n = 0; n < job->num_out; n++) {
            double sum = 0.0;
            double magnitude = 0.0;
            for (int32_t k = 0; k < job->depth; k++) {
                double term = weight_at(form, job, n, k) *
                              (double)job->x[(size_t)row * job->x_stride + (size_t)k];
                sum += term;
                magnitude += fabs(term);
            }
            float y = job->y[(size_t)row * job->y_stride + (size_t)n * job->y_out_stride];
            /* depth + 1 roundings of at most half an ulp of a partial sum each */
            double bound = magnitude * (job->depth + 1) * 0x1p-24;
            if (fabs((double)y - sum) > bound) {
                fail_msg("row %d, output %d of %d x %d: %g, not %g", row, n, job->num_out,
                         job->depth, (double)y, sum);
            }
        }
    }
}

static void products_are_those_of_double_precision(void **state)
{
    (void)state;
    for (int form = GEMM_NT; form <= GEMM_NN; form++) {
        for (size_t i = 0; i < LENGTH(depths) * LENGTH(outs); i++) {
            mla_dtype dtype = i % 2 ? MLA_F32 : MLA_BF16;
            int32_t num_rows = (int32_t)rng_between(&data.random, 1, 9);
            gemm job = job_of((gemm_form)form, dtype, outs[i % LENGTH(outs)],
                              depths[i / LENGTH(outs)], num_rows);
            run_whole((gemm_form)form, &job);
            check_against_double((gemm_form)form, &job);
        }
    }
}

static void products_go_to_the_rows_and_strides_asked_for(void **state)
{
    (void)state;
    static const int32_t from[3] = {5, 0, 5};
    static const int32_t to[3] = {2, 0, 1};
    gemm plain = job_of(GEMM_NT, MLA_BF16, 10, 40, 6);
    run_whole(GEMM_NT, &plain);
    memcpy(data.expected, data.y, sizeof data.y);
    gemm odd = plain;
    odd.num_rows = 3;
    odd.x_rows = from;
    odd.y_rows = to;
    odd.y_stride = 1;
    odd.y_out_stride = 3;
    run_whole(GEMM_NT, &odd);
    for (int32_t i = 0; i < 3; i++) {
        for (int32_t n = 0; n < 10; n++) {
            assert_true(data.y[n * 3 + to[i]] == data.expected[from[i] * 10 + n]);
        }
    }
}

static void added_products_add(void **state)
{
    (void)state;
    for (int form = GEMM_NT; form <= GEMM_NN; form++) {
        gemm job = job_of((gemm_form)form, MLA_F32, 49, 64, 5);
        run_whole((gemm_form)form, &job);
        memcpy(data.expected, data.y, sizeof data.y);
        job.is_added = true;
        run_whole((gemm_form)form, &job);
        for (size_t i = 0; i < (size_t)5 * 49; i++) {
            assert_true(fabsf(data.y[i] - 2.0F * data.expected[i]) <= 1e-4F);
        }
    }
}

/* Rows [0, num) at once must be each row alone. */
static void check_row_bits(gemm_form form, mlai_pool *pool, gemm job)
{
    size_t num_y = (size_t)job.num_rows * (size_t)job.num_out;
    memset(data.y, 0x5a, sizeof data.y);
    gemm_run(ops, pool, form, &job, 1);
    memcpy(data.expected, data.y, num_y * sizeof(float));
    memset(data.y, 0x5a, sizeof data.y);
    for (int32_t row = 0; row < job.num_rows; row++) {
        gemm alone = job;
        alone.num_rows = 1;
        alone.x += (size_t)row * job.x_stride;
        alone.y += (size_t)row * job.y_stride;
        for (int32_t n = 0; n < job.num_out; n++) {
            gemm_tile tile = {0, 1, n, n + 1};
            if (form == GEMM_NT) {
                ops->gemm_nt(&alone, &tile);
            } else {
                ops->gemm_nn(&alone, &tile);
            }
        }
    }
    if (memcmp(data.expected, data.y, num_y * sizeof(float)) != 0) {
        fail_msg("%d rows of %d x %d differ from the rows alone", job.num_rows, job.num_out,
                 job.depth);
    }
}

static void bits_do_not_depend_on_rows_tiles_or_threads(void **state)
{
    (void)state;
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, NULL, 0, NULL), MLA_OK);
    for (int32_t threads = 1; threads <= 2; threads++) {
        mlai_pool *pool = NULL;
        assert_int_equal(mlai_pool_start(&ledger, threads, &pool, NULL), MLA_OK);
        for (int32_t rows = 1; rows <= MAX_ROWS; rows++) {
            for (int form = GEMM_NT; form <= GEMM_NN; form++) {
                mla_dtype dtype = rows % 2 ? MLA_F32 : MLA_BF16;
                check_row_bits((gemm_form)form, pool,
                               job_of((gemm_form)form, dtype, MAX_OUTS, 100, rows));
            }
        }
        mlai_pool_stop(&pool);
    }
}

static void many_products_are_run_as_one_set(void **state)
{
    (void)state;
    mlai_ledger ledger;
    mlai_pool *pool = NULL;
    assert_int_equal(mlai_ledger_init(&ledger, NULL, 0, NULL), MLA_OK);
    assert_int_equal(mlai_pool_start(&ledger, 2, &pool, NULL), MLA_OK);
    for (int32_t rows = 1; rows <= 16; rows += 15) { /* inline, and on the pool */
        gemm jobs[3];
        for (int i = 0; i < 3; i++) {
            jobs[i] = job_of(GEMM_NT, MLA_BF16, 131, 256, rows);
            jobs[i].y = data.y + (size_t)i * 131 * 16;
        }
        jobs[1].num_rows = 0;
        memset(data.y, 0, sizeof data.y);
        gemm_run(ops, pool, GEMM_NT, jobs, 3);
        check_against_double(GEMM_NT, &jobs[0]);
        check_against_double(GEMM_NT, &jobs[2]);
        for (int i = 0; i < 131 * 16; i++) {
            assert_true(jobs[1].y[i] == 0.0F);
        }
    }
    mlai_pool_stop(&pool);
}

static void rms_norm_divides_by_the_root_of_the_mean_square(void **state)
{
    (void)state;
    for (int32_t num = 1; num <= 70; num++) {
        for (int is_f32 = 0; is_f32 < 2; is_f32++) {
            vector weight = {is_f32 ? (const void *)data.w_f32 : (const void *)data.w_bf16,
                             is_f32 ? MLA_F32 : MLA_BF16, num};
            ops->rms_norm(data.x, &weight, 1e-3F, data.y);
            double sum = 0.0;
            for (int32_t i = 0; i < num; i++) {
                sum += (double)data.x[i] * (double)data.x[i];
            }
            for (int32_t i = 0; i < num; i++) {
                double w = is_f32 ? (double)data.w_f32[i]
                                  : (double)mlai_f32_from_bf16(data.w_bf16[i]);
                double expected = (double)data.x[i] / sqrt(sum / num + 1e-3) * w;
                assert_true(fabs((double)data.y[i] - expected) <=
                            1e-6 * (1.0 + fabs(expected)));
            }
        }
    }
}

static void silu_mul_is_x_over_one_plus_e_to_minus_x(void **state)
{
    (void)state;
    float gate[200];
    float up[200];
    for (int i = 0; i < 200; i++) {
        gate[i] = (float)(i - 100) * 1.03F;
        up[i] = rng_f32(&data.random, -2.0F, 2.0F);
        data.x[i] = gate[i];
    }
    ops->silu_mul(gate, up, 197);
    for (int i = 0; i < 197; i++) {
        double x = (double)data.x[i];
        double expected = x / (1.0 + exp(-x)) * (double)up[i];
        assert_true(fabs((double)gate[i] - expected) <= 1e-6 * fabs(expected) + 1e-30);
    }
    assert_true(gate[199] == data.x[199]);
}

static void exp_sum_gives_weights_relative_to_the_maximum(void **state)
{
    (void)state;
    for (int32_t num = 1; num <= 40; num++) {
        double sum = 0.0;
        for (int32_t i = 0; i < num; i++) {
            data.y[i] = rng_f32(&data.random, -200.0F, 20.0F);
            data.expected[i] = data.y[i];
        }
        float max = 0.5F * ops->max_of(data.y, num);
        float got = ops->exp_sum(data.y, num, 0.5F, max);
        for (int32_t i = 0; i < num; i++) {
            double expected = exp(0.5 * (double)data.expected[i] - (double)max);
            sum += expected;
            /* the argument's own rounding, 1e-5 at 100, is an error of the weight */
            assert_true(fabs((double)data.y[i] - expected) <= 1e-5 * expected + 1e-37);
        }
        assert_true(fabs((double)got - sum) <= 1e-5 * sum);
    }
}

static void exp_sum_gives_nothing_to_what_is_far_below(void **state)
{
    (void)state;
    float x[9] = {0.0F, -INFINITY, -1e30F, -90.0F, 0.0F, 0.0F, 0.0F, 0.0F, -INFINITY};
    float sum = ops->exp_sum(x, 9, 1.0F, 0.0F);
    assert_true(x[0] == 1.0F && x[1] == 0.0F && x[2] == 0.0F && x[8] == 0.0F);
    assert_true(x[3] >= 0.0F && x[3] < 1e-38F);
    assert_true(sum == 5.0F);
}

static void max_of_finds_the_largest_anywhere(void **state)
{
    (void)state;
    for (int32_t num = 1; num <= 40; num++) {
        for (int32_t at = 0; at < num; at++) {
            for (int32_t i = 0; i < num; i++) {
                data.y[i] = i == at ? -1.0F : -2.0F - (float)i;
            }
            assert_true(ops->max_of(data.y, num) == -1.0F);
        }
    }
}

static void add_scaled_adds_every_element(void **state)
{
    (void)state;
    float y[19] = {0};
    ops->add_scaled(y, data.x, 3.0F, 18);
    for (int i = 0; i < 18; i++) {
        assert_true(fabsf(y[i] - 3.0F * data.x[i]) <= 1e-6F * fabsf(y[i]));
    }
    assert_true(y[18] == 0.0F);
}

static int run_level(const operators *level)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_double_precision),
        cmocka_unit_test(products_go_to_the_rows_and_strides_asked_for),
        cmocka_unit_test(added_products_add),
        cmocka_unit_test(bits_do_not_depend_on_rows_tiles_or_threads),
        cmocka_unit_test(many_products_are_run_as_one_set),
        cmocka_unit_test(rms_norm_divides_by_the_root_of_the_mean_square),
        cmocka_unit_test(silu_mul_is_x_over_one_plus_e_to_minus_x),
        cmocka_unit_test(exp_sum_gives_weights_relative_to_the_maximum),
        cmocka_unit_test(exp_sum_gives_nothing_to_what_is_far_below),
        cmocka_unit_test(max_of_finds_the_largest_anywhere),
        cmocka_unit_test(add_scaled_adds_every_element),
    };
    ops = level;
    return cmocka_run_group_tests_name(level->name, tests, start, NULL);
}

int main(void)
{
    levels suite = levels_start("operators");
    if (levels_run(&suite, "c", true)) {
        suite.num_failed += run_level(&operators_c);
    }
    if (levels_run(&suite, "avx2", (mlai_cpu_isa() & MLA_ISA_AVX2) != 0)) {
        suite.num_failed += run_level(&operators_avx2);
    }
    return levels_finish(&suite);
}
