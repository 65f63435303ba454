/* test_run.c - mla_run, through the public API, against the oracle: a set of cases in which
 * every pair of values of every two factors occurs, at every level of this CPU and on a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the three above */
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/plan_line.h"
#include "device/cpu.h"
#include "support/gpu.h"
#include "support/must.h"
#include "support/pairwise.h"
#include "support/placed_case.h"
#include "support/rig.h"

enum { WORST_SEEN = 30 /* |error| / (u A) of ordinary scores: see test_attend.c */ };

enum factor {
    LENGTH,
    HEADS,
    PAGE,
    FORMAT,
    QUERY,
    MODE,
    WINDOW,
    CAUSAL,
    SCORES,
    OUTPUT,
    SHAPE,
    PADDED,
    THREADS,
    NUM_FACTORS
};

static const int32_t lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 4097};
static const int32_t heads[] = {1, 4, 6, 8, 12, 16, 20, 48, 96, 128};
static const int32_t pages[] = {1, 16, 48, 64, 128, 944};
static const mla_kv_format formats[] = {MLA_KV_BF16, MLA_KV_FP8, MLA_KV_FP8_G128,
                                        MLA_KV_F32};
static const mla_dtype queries[] = {MLA_BF16, MLA_E4M3, MLA_F32};
static const mla_mode modes[] = {MLA_DECODE, MLA_VERIFY, MLA_EXTEND};
static const int32_t windows[] = {0, 1, 100, 513};
static const int32_t causal[] = {1, 0};
static const double deviations[] = {0, 2000}; /* of scores; 0: ordinary */
static const mla_dtype outputs[] = {MLA_F32, MLA_BF16};
static const int32_t shapes[][2] = {{512, 64}, {256, 32}, {256, 64}, {1024, 64}};
static const int32_t paddings[] = {0, 192};
static const int32_t thread_counts[] = {1, 2};

#define NUM(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))
static const int32_t values_on_cpu[NUM_FACTORS] = {
    NUM(lengths), NUM(heads),    NUM(pages),        NUM(formats),    NUM(queries),
    NUM(modes),   NUM(windows),  NUM(causal),       NUM(deviations), NUM(outputs),
    NUM(shapes),  NUM(paddings), NUM(thread_counts)};
/* The last format and the last query are f32, which a GPU refuses; it has no threads. */
static const int32_t values_on_gpu[NUM_FACTORS] = {NUM(lengths),
                                                   NUM(heads),
                                                   NUM(pages),
                                                   NUM(formats) - 1,
                                                   NUM(queries) - 1,
                                                   NUM(modes),
                                                   NUM(windows),
                                                   NUM(causal),
                                                   NUM(deviations),
                                                   NUM(outputs),
                                                   NUM(shapes),
                                                   NUM(paddings),
                                                   1};

static uint32_t isa; /* 0: the GPU's */

/* The oracle takes a second for a few thousand keys of 128 heads: few rows there. */
static int32_t affordable(int32_t rows, const attend_case *c)
{
    int64_t most = 300000 / ((int64_t)c->caps.num_heads * (c->lens[0] + 1)) + 1;
    return rows < most ? rows : (int32_t)most;
}

/* The request with the length of the case, and smaller ones around it: one that is longer
 * than its rows, one that is not, and one without rows. */
static void add_requests(attend_case *c, const unsigned char *row, rng *random)
{
    static const int32_t most_rows[] = {1, 4, 9};
    int32_t most = most_rows[row[MODE]];
    c->num_requests = 4;
    c->lens[0] = lengths[row[LENGTH]];
    c->rows[0] = affordable(most, c);
    c->lens[1] = (int32_t)rng_between(random, 16, 80);
    c->rows[1] = c->caps.mode == MLA_EXTEND ? (int32_t)rng_between(random, 1, 5) : 1;
    c->lens[2] = (int32_t)rng_between(random, -2, 2);
    c->rows[2] = (int32_t)rng_between(random, 1, most < 4 ? most : 4);
    c->lens[3] = 40;
    c->rows[3] = 0;
}

static attend_case case_of(const unsigned char *row, rng *random)
{
    attend_case c = {
        .caps = {.mode = modes[row[MODE]],
                 .kv_format = formats[row[FORMAT]],
                 .query_dtype = queries[row[QUERY]],
                 .output_dtype = outputs[row[OUTPUT]],
                 .num_heads = heads[row[HEADS]],
                 .latent_dim = shapes[row[SHAPE]][0],
                 .rope_dim = shapes[row[SHAPE]][1],
                 .page_tokens = pages[row[PAGE]],
                 .causal = causal[row[CAUSAL]],
                 .window = windows[row[WINDOW]],
                 .softmax_scale = 0.0721688F},
        .logit_deviation = deviations[row[SCORES]],
    };
    size_t page_bytes =
        (size_t)c.caps.page_tokens *
        mla_kv_row_bytes(c.caps.kv_format, c.caps.latent_dim, c.caps.rope_dim);
    if (paddings[row[PADDED]] > 0) {
        c.caps.page_stride_bytes = (int64_t)((page_bytes + 15) / 16 * 16) + 192;
    }
    add_requests(&c, row, random);
    return c;
}

/* Binds exactly the bytes that are required, runs, judges, and lets everything go. */
static attend_verdict judge_run(const attend_case *c, int32_t num_threads)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_context *context =
        isa == 0 ? rig_context(1, NULL) : rig_context_of_isa(num_threads, isa);
    mla_plan *plan = rig_plan(context, &c->caps);
    mla_requirements need = MLA_INIT(mla_requirements);
    mla_binding *binding = NULL;
    must(mla_plan_requirements(plan, &need, &err), &err);
    placed_case placed = placed_take(c, &need);
    must(mla_bind(plan, &placed.buffers, &binding, &err), &err);
    must(mla_run(binding, &c->batch, (mla_stream){NULL}, &err), &err);
    placed_fetch(&placed);
    attend_verdict verdict = placed_judge(&placed, c);
    mla_unbind(&binding);
    mla_plan_release(&plan);
    must(mla_context_destroy(&context, &err), &err);
    assert_int_equal(placed_drop(&placed), 0);
    return verdict;
}

/* With a line for `mla bench attention --plan`, where any device may be. */
static void describe(const attend_case *c, int32_t number, attend_verdict verdict)
{
    char line[MLAI_PLAN_LINE_BYTES];
    (void)mlai_plan_line_format(isa == 0 ? "cuda" : "cpu", &c->caps, line, sizeof line);
    print_message("case %d: %s, scores %g len %d rows %d,%d,%d:"
                  " worst %.1f u A, %.3f of the bound\n",
                  number, strchr(line, ' ') + 1, c->logit_deviation, c->lens[0], c->rows[0],
                  c->rows[1], c->rows[2], verdict.worst_in_u, verdict.worst_share);
}

static void assert_good(const attend_case *c, attend_verdict verdict)
{
    assert_string_equal(verdict.first_wrong, "");
    assert_int_equal(verdict.num_wrong, 0);
    assert_false(verdict.is_mistrusted);
    if (c->logit_deviation == 0 && isa != 0) {
        assert_true(verdict.worst_in_u < 2 * WORST_SEEN);
    }
}

/* Of `num` cases to run, spread over all rows: short lengths come first there. */
static const unsigned char *row_of(const pairwise *plan, int32_t i, int32_t num)
{
    return plan->row[(int64_t)i * plan->num_rows / num];
}

/* Prepares what the cases will want, all at once. */
static void warm(const pairwise *plan, int32_t num)
{
    rng any = rng_of_seed(1);
    mla_caps *caps = calloc((size_t)num, sizeof *caps);
    assert_non_null(caps);
    for (int32_t i = 0; i < num; i++) {
        attend_case c = case_of(row_of(plan, i, num), &any);
        attend_case_shape(&c);
        caps[i] = c.caps;
    }
    gpu_warm(caps, num);
    free(caps);
}

static void every_pair_of_settings_agrees_with_the_oracle(void **state)
{
    (void)state;
    rng random = rng_start("every_pair_of_settings_agrees_with_the_oracle");
    const int32_t *num_values = isa == 0 ? values_on_gpu : values_on_cpu;
    pairwise plan = pairwise_plan(NUM_FACTORS, num_values, &random);
    assert_int_equal(pairwise_num_missing(&plan, num_values, plan.num_rows), 0);
    assert_true(pairwise_num_missing(&plan, num_values, plan.num_rows - 1) > 0);
    int32_t num = test_cases(plan.num_rows);
    warm(&plan, num);
    for (int32_t i = 0; i < num; i++) {
        const unsigned char *row = row_of(&plan, i, num);
        attend_case c = case_of(row, &random);
        attend_case_build(&c, &random);
        attend_verdict verdict = judge_run(&c, thread_counts[row[THREADS]]);
        describe(&c, i, verdict);
        assert_good(&c, verdict);
        attend_case_drop(&c);
    }
    print_message("%d cases\n", num);
    pairwise_drop(&plan);
}

static attend_case small_case(void)
{
    return (attend_case){
        .caps = {.mode = MLA_VERIFY,
                 .kv_format = MLA_KV_BF16,
                 .query_dtype = MLA_BF16,
                 .output_dtype = MLA_F32,
                 .num_heads = 5,
                 .latent_dim = 256,
                 .rope_dim = 64,
                 .page_tokens = 16,
                 .causal = 1,
                 .softmax_scale = 0.0721688F},
        .num_requests = 3,
        .lens = {70, 100, 33},
        .rows = {3, 1, 4},
    };
}

static void pages_outside_the_pool_mask_their_tokens_only(void **state)
{
    (void)state;
    rng random = rng_start("pages_outside_the_pool_mask_their_tokens_only");
    for (int i = 0; i < 20; i++) {
        attend_case c = small_case();
        c.has_bad_pages = true;
        attend_case_build(&c, &random);
        assert_good(&c, judge_run(&c, 2));
        attend_case_drop(&c);
    }
}

/* 1000 tokens are said and the table names 64. */
static void a_length_beyond_the_table_is_cut(void **state)
{
    (void)state;
    rng random = rng_start("a_length_beyond_the_table_is_cut");
    attend_case c = small_case();
    c.caps.table_width = 4;
    c.lens[1] = 1000;
    c.lens[2] = INT32_MAX;
    attend_case_build(&c, &random);
    assert_true(c.expected.lse[0] > 0);
    assert_good(&c, judge_run(&c, 1));
    attend_case_drop(&c);
}

static int run_suite(mla_isa only)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_settings_agrees_with_the_oracle),
        cmocka_unit_test(pages_outside_the_pool_mask_their_tokens_only),
        cmocka_unit_test(a_length_beyond_the_table_is_cut),
    };
    isa = (uint32_t)only;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

static int run_on_gpu(void)
{
    return run_suite((mla_isa)0);
}

int main(void)
{
    levels suite = levels_start("run");
    if (levels_run(&suite, "c", true)) {
        suite.num_failed += run_suite(MLA_ISA_C);
    }
    if (levels_run(&suite, "avx2", mlai_cpu_isa() & MLA_ISA_AVX2)) {
        suite.num_failed += run_suite(MLA_ISA_AVX2);
    }
    gpu_level(&suite, run_on_gpu);
    return levels_finish(&suite);
}
