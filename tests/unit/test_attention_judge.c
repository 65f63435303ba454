/* The judge of attention results passes what is within its bound and sees what is not, in
 * every place that a result has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/convert.h"
#include "cli/attention_judge.h"

enum { DIM = 64 };

typedef struct sample {
    mla_caps caps;
    double out[DIM], magnitude[DIM];
    attention_expectation expected;
    float output[DIM];
    attention_answer answer;
} sample;

static void begin(sample *s, mla_kv_format format)
{
    memset(s, 0, sizeof *s);
    s->caps = (mla_caps)MLA_INIT(mla_caps);
    s->caps.kv_format = format;
    s->caps.latent_dim = DIM;
    s->caps.output_dtype = MLA_F32;
    for (int d = 0; d < DIM; d++) {
        s->out[d] = d - 20;
        s->magnitude[d] = 50;
        s->output[d] = (float)(d - 20);
    }
    s->expected = (attention_expectation){s->out, s->magnitude, 3, 2, 100};
    s->answer = (attention_answer){s->output, MLA_F32, 3};
}

static attention_verdict judge(const sample *s, mla_backend backend, bool is_merged)
{
    attention_verdict verdict = {0};
    const attention_rule rule = {backend, &s->caps, is_merged};
    attention_judge(&rule, &s->expected, &s->answer, 7, 3, &verdict);
    assert_int_equal(verdict.num_values, DIM + 1);
    return verdict;
}

/* Just inside of what is allowed, then just outside. */
static void check_edges(mla_backend backend, mla_kv_format format, bool is_merged)
{
    sample s;
    begin(&s, format);
    const attention_rule rule = {backend, &s.caps, is_merged};
    attention_allowance allowance = attention_allowance_of(&rule, &s.expected);
    for (int d = 0; d < DIM; d++) {
        double allowed = attention_allowed(&allowance, &s.expected, d);
        double before = s.out[d];
        s.out[d] = before + 0.99 * allowed;
        assert_int_equal(judge(&s, backend, is_merged).num_wrong, 0);
        assert_true(attention_finding_share(&(attention_finding){
                        0, 0, d, (double)s.output[d], s.out[d], allowed}) > 0.98);
        s.out[d] = before - 1.02 * allowed;
        attention_verdict verdict = judge(&s, backend, is_merged);
        assert_int_equal(verdict.num_wrong, 1);
        assert_int_equal(verdict.first_wrong.column, d);
        assert_int_equal(verdict.first_wrong.row, 7);
        assert_int_equal(verdict.first_wrong.head, 3);
        s.out[d] = before;
    }
    s.answer.lse = (float)(3 + 1.5 * allowance.lse);
    attention_verdict verdict = judge(&s, backend, is_merged);
    assert_int_equal(verdict.num_wrong, 1);
    assert_int_equal(verdict.first_wrong.column, ATTENTION_LSE);
    assert_true(attention_finding_share(&verdict.worst_lse) > 1);
}

static void a_value_beyond_its_bound_is_wrong_on_every_backend(void **state)
{
    (void)state;
    check_edges(MLA_BACKEND_CPU, MLA_KV_BF16, false);
    check_edges(MLA_BACKEND_CPU, MLA_KV_FP8, true);
    check_edges(MLA_BACKEND_CUDA, MLA_KV_BF16, false);
    check_edges(MLA_BACKEND_CUDA, MLA_KV_FP8, false);
    check_edges(MLA_BACKEND_CUDA, MLA_KV_FP8, true);
}

static void what_is_no_number_is_infinitely_wrong(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        sample s;
        begin(&s, MLA_KV_BF16);
        s.output[63] = bad[i];
        attention_verdict verdict = judge(&s, MLA_BACKEND_CPU, false);
        assert_int_equal(verdict.num_wrong, 1);
        assert_int_equal(verdict.worst_output.column, 63);
        assert_true(attention_finding_share(&verdict.worst_output) == HUGE_VAL);
    }
}

static void an_empty_row_is_exactly_zero_and_minus_infinity(void **state)
{
    (void)state;
    sample s;
    begin(&s, MLA_KV_BF16);
    memset(s.out, 0, sizeof s.out);
    memset(s.magnitude, 0, sizeof s.magnitude);
    memset(s.output, 0, sizeof s.output);
    s.expected.lse = -HUGE_VAL;
    s.expected.num_keys = 0;
    s.answer.lse = -INFINITY;
    assert_int_equal(judge(&s, MLA_BACKEND_CUDA, true).num_wrong, 0);
    s.output[5] = 0x1p-126F;
    assert_int_equal(judge(&s, MLA_BACKEND_CUDA, true).first_wrong.column, 5);
    s.output[5] = 0;
    s.answer.lse = -1e30F;
    assert_int_equal(judge(&s, MLA_BACKEND_CUDA, true).first_wrong.column, ATTENTION_LSE);
}

static void an_output_in_bf16_is_read_as_such(void **state)
{
    (void)state;
    sample s;
    uint16_t half[DIM];
    begin(&s, MLA_KV_BF16);
    s.caps.output_dtype = MLA_BF16;
    for (int d = 0; d < DIM; d++) {
        half[d] = mlai_bf16_from_f32(s.output[d]);
    }
    s.answer.output = half;
    s.answer.dtype = MLA_BF16;
    assert_int_equal(judge(&s, MLA_BACKEND_CPU, false).num_wrong, 0);
    half[63] = mlai_bf16_from_f32(43.5F);
    assert_int_equal(judge(&s, MLA_BACKEND_CPU, false).num_wrong, 1);
}

static void a_merged_result_is_allowed_more_than_each_of_its_parts(void **state)
{
    (void)state;
    sample s;
    begin(&s, MLA_KV_FP8);
    const attention_rule part = {MLA_BACKEND_CPU, &s.caps, false};
    const attention_rule whole = {MLA_BACKEND_CPU, &s.caps, true};
    attention_allowance less = attention_allowance_of(&part, &s.expected);
    attention_allowance more = attention_allowance_of(&whole, &s.expected);
    assert_true(more.relative > less.relative + 2 * less.lse);
    assert_true(more.relative < 2 * (less.relative + 2 * less.lse));
    assert_true(more.lse > less.lse);
    assert_true(more.lse < 2 * less.lse);
}

static void verdicts_keep_the_first_wrong_value_and_the_worst_share(void **state)
{
    (void)state;
    attention_verdict sum = {0};
    attention_verdict next = {0};
    const attention_finding good = {0, 0, 1, 1.0, 1.5, 1};
    const attention_finding bad = {1, 0, 2, 4.0, 1.0, 1};
    const attention_finding worse = {2, 0, 3, 9.0, 1.0, 1};
    attention_verdict_note(&sum, &good);
    assert_int_equal(attention_verdict_status(&sum, NULL), MLA_OK);
    attention_verdict_note(&next, &bad);
    attention_verdict_note(&next, &worse);
    attention_verdict_add(&sum, &next);
    assert_int_equal(sum.num_values, 3);
    assert_int_equal(sum.num_wrong, 2);
    assert_int_equal(sum.first_wrong.row, 1);
    assert_int_equal(sum.worst_output.row, 2);
    mla_error err = {MLA_OK, 0, NULL, ""};
    assert_int_equal(attention_verdict_status(&sum, &err), MLA_ERR_INTERNAL);
    assert_non_null(strstr(err.message, "output of query row 1, head 0, column 2 is 4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_beyond_its_bound_is_wrong_on_every_backend),
        cmocka_unit_test(what_is_no_number_is_infinitely_wrong),
        cmocka_unit_test(an_empty_row_is_exactly_zero_and_minus_infinity),
        cmocka_unit_test(an_output_in_bf16_is_read_as_such),
        cmocka_unit_test(a_merged_result_is_allowed_more_than_each_of_its_parts),
        cmocka_unit_test(verdicts_keep_the_first_wrong_value_and_the_worst_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
