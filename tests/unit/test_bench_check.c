/* The check in front of a plan's row of `mla bench` passes what the kernels give and sees
 * one wrong value. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attention/plan_line.h"
#include "cli/bench_batch.h"
#include "support/rig.h"

static const mla_kv_format formats[] = {MLA_KV_BF16, MLA_KV_FP8, MLA_KV_FP8_G128,
                                        MLA_KV_F32};

static mla_caps caps_of(int i)
{
    mla_caps caps = rig_extend_caps(3, 7, 1200);
    caps.max_rows_per_request = 3;
    caps.kv_format = formats[i % 4];
    caps.query_dtype = (mla_dtype)(1 + i % 3);
    caps.output_dtype = i % 2 ? MLA_BF16 : MLA_F32;
    caps.causal = i % 5 != 0;
    caps.window = i % 7 == 1 ? 700 : 0;
    caps.num_pages = i % 3 == 2 ? 5 : caps.num_pages; /* shared by the requests */
    return caps;
}

static bench_batch open_and_run(mla_context *context, const mla_caps *caps)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    bench_batch batch = {0};
    if (bench_batch_open(context, caps, &batch, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(batch.batch.num_query_rows, 7);
    assert_int_equal(batch.most_rows, 3);
    memset(batch.call.output.data, 0xff, batch.call.output.bytes);
    memset(batch.call.lse.data, 0xff, batch.call.lse.bytes);
    assert_int_equal(mla_run(batch.call.binding, &batch.batch, (mla_stream){NULL}, NULL),
                     MLA_OK);
    return batch;
}

static void what_the_kernels_give_passes(void **state)
{
    (void)state;
    mla_context *context = rig_context(2, NULL);
    for (int i = 0; i < 12; i++) {
        mla_error err = {MLA_OK, 0, NULL, ""};
        mla_caps caps = caps_of(i);
        bench_batch batch = open_and_run(context, &caps);
        if (bench_batch_check(&batch, &err) != MLA_OK) {
            char line[MLAI_PLAN_LINE_BYTES];
            mla_plan_describe(batch.call.plan, line, sizeof line, NULL);
            fail_msg("%s: %s", line, err.message);
        }
        bench_batch_free(&batch);
    }
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void expect_seen(const bench_batch *batch, float *value, float by, const char *words)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    float before = *value;
    *value = by;
    assert_int_equal(bench_batch_check(batch, &err), MLA_ERR_INTERNAL);
    *value = before;
    if (!strstr(err.message, words)) {
        fail_msg("'%s' is not in '%s'", words, err.message);
    }
}

static void one_wrong_value_is_seen(void **state)
{
    (void)state;
    mla_context *context = rig_context(2, NULL);
    mla_caps caps = caps_of(0);
    bench_batch batch = open_and_run(context, &caps);
    float *out = batch.call.output.data; /* [7][4][128] */
    float *lse = batch.call.lse.data;    /* [7][4] */
    float *value = &out[(6 * 4 + 3) * 128 + 127];
    expect_seen(&batch, value, *value + 1e-3F, "output of query row 6, head 3, column 127");
    expect_seen(&batch, value, NAN, "output of query row 6, head 3, column 127 is");
    expect_seen(&batch, out, *out + 1e-3F, "output of query row 0, head 0, column 0");
    expect_seen(&batch, &lse[13], lse[13] + 1e-2F, "lse of query row 3, head 1");
    expect_seen(&batch, &lse[13], -INFINITY, "lse of query row 3, head 1 is -inf");
    assert_int_equal(bench_batch_check(&batch, NULL), MLA_OK);
    bench_batch_free(&batch);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_kernels_give_passes),
        cmocka_unit_test(one_wrong_value_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
