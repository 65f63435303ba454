/* Bit equality over a covering set of everything that a plan can be: each request alone on
 * one thread, and among neighbours, in other pages, on three threads, run and replayed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/gpu.h"
#include "support/pairwise.h"
#include "support/rig.h"

enum {
    LENGTH,
    HEADS,
    PAGE,
    FORMAT,
    QUERY,
    OUTPUT,
    WIDTH,
    MASK,
    ROWS,
    PADDING,
    NUM_FACTORS
};

static const int lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 4097};
static const int heads[] = {1, 4, 6, 8, 12, 16, 20, 48, 96, 128};
static const int pages[] = {1, 16, 48, 64, 128, 944};
static const mla_kv_format formats[] = {MLA_KV_BF16, MLA_KV_FP8, MLA_KV_FP8_G128,
                                        MLA_KV_F32};
static const mla_dtype queries[] = {MLA_BF16, MLA_E4M3, MLA_F32};
static const mla_dtype outputs[] = {MLA_F32, MLA_BF16};
static const int widths[][2] = {{128, 16}, {128, 64}, {256, 32}, {512, 64}};
static const int masks[][2] = {{1, 0}, {1, 7}, {0, 0}, {1, 513}}; /* causal, window */
static const int rows[] = {1, 3, 20};
static const int paddings[] = {0, 192};

#define NUM(values) ((int)(sizeof(values) / sizeof(values)[0]))
static const int32_t values_on_cpu[NUM_FACTORS] = {
    [LENGTH] = NUM(lengths),  [HEADS] = NUM(heads),   [PAGE] = NUM(pages),
    [FORMAT] = NUM(formats),  [QUERY] = NUM(queries), [OUTPUT] = NUM(outputs),
    [WIDTH] = NUM(widths),    [MASK] = NUM(masks),    [ROWS] = NUM(rows),
    [PADDING] = NUM(paddings)};
/* The last format and the last query are f32, which a GPU refuses. */
static const int32_t values_on_gpu[NUM_FACTORS] = {
    [LENGTH] = NUM(lengths),     [HEADS] = NUM(heads),       [PAGE] = NUM(pages),
    [FORMAT] = NUM(formats) - 1, [QUERY] = NUM(queries) - 1, [OUTPUT] = NUM(outputs),
    [WIDTH] = NUM(widths),       [MASK] = NUM(masks),        [ROWS] = NUM(rows),
    [PADDING] = NUM(paddings)};

static mla_caps caps_of(const unsigned char *value)
{
    mla_caps caps = rig_caps();
    int32_t tokens = lengths[value[LENGTH]] > 100 ? lengths[value[LENGTH]] : 100;
    caps.num_heads = heads[value[HEADS]];
    caps.page_tokens = pages[value[PAGE]];
    caps.kv_format = formats[value[FORMAT]];
    caps.query_dtype = queries[value[QUERY]];
    caps.output_dtype = outputs[value[OUTPUT]];
    caps.latent_dim = widths[value[WIDTH]][0];
    caps.rope_dim = widths[value[WIDTH]][1];
    caps.causal = masks[value[MASK]][0];
    caps.window = masks[value[MASK]][1];
    caps.max_rows_per_request = rows[value[ROWS]];
    caps.mode = caps.max_rows_per_request == 1 ? MLA_DECODE
                : value[ROWS] == 1             ? MLA_VERIFY
                                               : MLA_EXTEND;
    caps.max_requests = 3;
    caps.max_query_rows = 3 * caps.max_rows_per_request;
    caps.max_context_tokens = tokens;
    caps.table_width = (tokens + caps.page_tokens - 1) / caps.page_tokens + 1;
    caps.num_pages = 3 * (int64_t)caps.table_width + 2;
    if (paddings[value[PADDING]] != 0) {
        size_t row = mla_kv_row_bytes(caps.kv_format, caps.latent_dim, caps.rope_dim);
        int64_t page = (int64_t)row * caps.page_tokens;
        caps.page_stride_bytes = (page + paddings[value[PADDING]]) / 16 * 16 + 16;
    }
    return caps;
}

static void fail_case(const rig *r, const char *what)
{
    size_t bytes;
    char line[256];
    mla_plan_describe(r->plan, line, sizeof line, &bytes);
    fail_msg("%s: %s", what, line);
}

static void expect_rows(const rig *a, const rig *b, int32_t b_first, int32_t num_rows,
                        const char *what)
{
    for (int32_t i = 0; i < num_rows; i++) {
        if (!rig_same_bits(a, i, b, b_first + i)) {
            fail_case(a, what);
        }
    }
}

static void replay(rig *r)
{
    assert_int_equal(mla_record(r->binding, &r->batch, NULL), MLA_OK);
    rig_replay(r);
}

static void expect_invariant(const unsigned char *value, uint64_t seed)
{
    mla_caps caps = caps_of(value);
    int32_t num_rows = caps.max_rows_per_request;
    rig alone = rig_open(&caps, 1, seed);
    rig among = rig_open(&caps, 3, seed + 1);
    const rig_request request = {seed, lengths[value[LENGTH]], num_rows};
    const rig_request batch[] = {
        {seed + 2, 33, num_rows > 1 ? 2 : 1}, request, {seed + 3, 64, 1}};
    rig_load(&alone, &request, 1);
    rig_run(&alone);
    rig_load(&among, batch, 3);
    rig_run(&among);
    expect_rows(&alone, &among, batch[0].num_rows, num_rows, "neighbours change a row");
    replay(&among);
    expect_rows(&alone, &among, batch[0].num_rows, num_rows, "replay differs from run");
    rig_close(&alone);
    rig_close(&among);
}

/* Of `num` cases to run, spread over all rows. */
static const unsigned char *row_of(const pairwise *plan, int32_t i, int32_t num)
{
    return plan->row[(int64_t)i * plan->num_rows / num];
}

static void warm(const pairwise *plan, int32_t num)
{
    mla_caps *caps = calloc((size_t)num, sizeof *caps);
    assert_non_null(caps);
    for (int32_t i = 0; i < num; i++) {
        caps[i] = caps_of(row_of(plan, i, num));
    }
    gpu_warm(caps, num);
    free(caps);
}

static void no_pair_of_values_breaks_the_invariance(void **state)
{
    (void)state;
    rng random = rng_start("no_pair_of_values_breaks_the_invariance");
    const int32_t *num_values = rig_is_on_gpu ? values_on_gpu : values_on_cpu;
    pairwise plan = pairwise_plan(NUM_FACTORS, num_values, &random);
    assert_int_equal(pairwise_num_missing(&plan, num_values, plan.num_rows), 0);
    assert_true(pairwise_num_missing(&plan, num_values, plan.num_rows - 1) > 0);
    assert_true(plan.num_rows >= 130);
    int32_t num = test_cases(plan.num_rows);
    warm(&plan, num);
    for (int32_t i = 0; i < num; i++) {
        expect_invariant(row_of(&plan, i, num), rng_u64(&random));
    }
    print_message("%d cases\n", num);
    pairwise_drop(&plan);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_pair_of_values_breaks_the_invariance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_suite("covering", run_suite);
}
