/* A plan's line says everything: caps become a line and are themselves again, the plan made
 * from them describes itself by that line, and lines that say anything else are refused by
 * the word and its column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "attention/geometry.h"
#include "attention/plan_line.h"
#include "support/gpu.h"
#include "support/rig.h"

static const char example[] =
    "cpu:avx2 verify h128 d512+64 p64 fp8_g128 q:bf16 o:bf16 b32 q64 r2 t2048 n4096 s41984 "
    "ctx131072 causal w0 x0.0721687824";

static int32_t any32(rng *random)
{
    return (int32_t)rng_between(random, 0, INT32_MAX >> rng_between(random, 0, 30));
}

static int64_t any64(rng *random)
{
    return rng_between(random, 0, INT64_MAX >> rng_between(random, 0, 62));
}

/* Whatever the fields can hold and a line can say, possible or not. */
static mla_caps any_caps(rng *random)
{
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = (mla_mode)rng_between(random, MLA_DECODE, MLA_EXTEND);
    caps.kv_format = (mla_kv_format)rng_between(random, MLA_KV_BF16, MLA_KV_F32);
    caps.query_dtype = (mla_dtype)rng_between(random, MLA_F32, MLA_E4M3);
    caps.output_dtype = (mla_dtype)rng_between(random, MLA_F32, MLA_E4M3);
    caps.num_heads = any32(random);
    caps.latent_dim = any32(random);
    caps.rope_dim = any32(random);
    caps.page_tokens = any32(random);
    caps.causal = (int32_t)rng_between(random, 0, 1);
    caps.window = any32(random);
    caps.max_requests = any32(random);
    caps.max_query_rows = any32(random);
    caps.max_rows_per_request = any32(random);
    caps.table_width = any32(random);
    caps.interleave = any32(random);
    caps.interleave = caps.interleave == 1 ? 0 : caps.interleave;
    caps.max_context_tokens = any64(random);
    caps.num_pages = any64(random);
    caps.page_stride_bytes = any64(random);
    uint32_t bits = (uint32_t)rng_between(random, 0, 0x7f7fffff); /* every float but NaN */
    memcpy(&caps.softmax_scale, &bits, sizeof bits);
    return caps;
}

static mlai_plan_line parsed(const char *text)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mlai_plan_line line;
    if (mlai_plan_line_parse(text, strlen(text), &line, &err) != MLA_OK) {
        fail_msg("%s: %s", text, err.message);
    }
    return line;
}

/* Floats by their bits, as all of the caps. */
static bool is_same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static void caps_come_back_from_their_line(void **state)
{
    (void)state;
    rng random = rng_start("plan_line");
    for (int i = 0; i < 20000; i++) {
        mla_caps caps = any_caps(&random);
        char text[MLAI_PLAN_LINE_BYTES];
        size_t bytes = mlai_plan_line_format("cpu:c", &caps, text, sizeof text);
        assert_int_equal(bytes, strlen(text) + 1);
        mlai_plan_line line = parsed(text);
        assert_int_equal(line.isa, MLA_ISA_C);
        if (!is_same(&line.caps, &caps, sizeof caps)) {
            fail_msg("other caps come back from %s", text);
        }
    }
}

/* Small and possible. */
static mla_caps possible_caps(rng *random)
{
    static const int32_t pages[] = {1, 16, 48, 64};
    mla_caps caps = rig_caps();
    caps.mode = (mla_mode)rng_between(random, MLA_DECODE, MLA_EXTEND);
    caps.kv_format = (mla_kv_format)rng_between(
        random, MLA_KV_BF16, rig_is_on_gpu ? MLA_KV_FP8_G128 : MLA_KV_F32);
    caps.query_dtype =
        (mla_dtype)rng_between(random, rig_is_on_gpu ? MLA_BF16 : MLA_F32, MLA_E4M3);
    caps.output_dtype = (mla_dtype)rng_between(random, MLA_F32, MLA_BF16);
    caps.num_heads = (int32_t)rng_between(random, 1, 9);
    caps.latent_dim = 128 * (int32_t)rng_between(random, 1, 2);
    caps.rope_dim = 16 * (int32_t)rng_between(random, 0, 4);
    caps.page_tokens = pages[rng_between(random, 0, 3)];
    caps.causal = (int32_t)rng_between(random, 0, 1);
    caps.window = (int32_t)rng_between(random, 0, 3) * 50;
    caps.softmax_scale = rng_f32(random, 0.01F, 1);
    caps.max_requests = (int32_t)rng_between(random, 1, 4);
    caps.max_query_rows = (int32_t)rng_between(random, 4, 8);
    caps.max_rows_per_request =
        caps.mode == MLA_DECODE ? 1 : (int32_t)rng_between(random, 1, 4);
    caps.max_context_tokens = rng_between(random, 1, 200);
    caps.table_width = 200;
    caps.num_pages = rng_between(random, 1, 20);
    caps.interleave = caps.page_tokens > 1 ? 1 << rng_between(random, 0, 4) : 0;
    size_t row = mla_kv_row_bytes(caps.kv_format, caps.latent_dim, caps.rope_dim);
    caps.page_stride_bytes =
        rng_between(random, 0, 1) * ((int64_t)row * caps.page_tokens / 16 * 16 + 64);
    return caps;
}

static void describe(mla_context *context, const mla_caps *caps, char *text)
{
    size_t needed;
    mla_plan *plan = rig_plan(context, caps);
    mla_plan_describe(plan, text, MLAI_PLAN_LINE_BYTES, &needed);
    assert_int_equal(needed, strlen(text) + 1);
    mla_plan_release(&plan);
}

static void a_plan_made_from_a_line_describes_itself_by_that_line(void **state)
{
    (void)state;
    rng random = rng_start("plans");
    mla_context *context = rig_context(2, NULL);
    for (int i = 0; i < (rig_is_on_gpu ? 20 : 100); i++) { /* kernels compile there */
        char first[MLAI_PLAN_LINE_BYTES];
        char second[MLAI_PLAN_LINE_BYTES];
        mla_caps caps = possible_caps(&random);
        mlai_geometry geometry;
        describe(context, &caps, first);
        mlai_plan_line line = parsed(first);
        describe(context, &line.caps, second);
        assert_string_equal(first, second);
        mlai_geometry again;
        assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_OK);
        assert_int_equal(mlai_geometry_of(&line.caps, &again, NULL), MLA_OK);
        assert_memory_equal(&again.caps, &geometry.caps, sizeof again.caps);
    }
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void a_line_says_what_it_says(void **state)
{
    (void)state;
    mla_caps caps = parsed(example).caps;
    assert_int_equal(parsed(example).isa, MLA_ISA_AVX2);
    assert_int_equal(caps.mode, MLA_VERIFY);
    assert_int_equal(caps.num_heads, 128);
    assert_int_equal(caps.latent_dim, 512);
    assert_int_equal(caps.rope_dim, 64);
    assert_int_equal(caps.kv_format, MLA_KV_FP8_G128);
    assert_int_equal(caps.query_dtype, MLA_BF16);
    assert_int_equal(caps.max_requests, 32);
    assert_int_equal(caps.max_query_rows, 64);
    assert_int_equal(caps.page_stride_bytes, 41984);
    assert_int_equal(caps.max_context_tokens, 131072);
    assert_int_equal(caps.causal, 1);
    mla_caps other = parsed("  x1e-1 i16 causal ctx9 n3 t2 r1 q1 b1 o:f32 q:f32 f32 p16 "
                            "d64+0 h1 decode ")
                         .caps;
    assert_int_equal(other.interleave, 16);
    assert_int_equal(other.num_pages, 3);
    assert_int_equal(other.window, 0);
    assert_true(other.softmax_scale == 0.1F);
}

static void refuse(const char *text, size_t bytes, const char *words)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mlai_plan_line line;
    mlai_plan_line untouched;
    memset(&line, 0x5a, sizeof line);
    memset(&untouched, 0x5a, sizeof untouched);
    assert_int_equal(mlai_plan_line_parse(text, bytes, &line, &err), MLA_ERR_ARGUMENT);
    if (!strstr(err.message, words)) {
        fail_msg("%s is refused with '%s', without '%s'", text, err.message, words);
    }
    assert_memory_equal(&line, &untouched, sizeof line);
}

static void every_word_is_said_once(void **state)
{
    (void)state;
    for (const char *at = example; *at; at += strcspn(at, " "), at += *at == ' ') {
        char text[2 * sizeof example];
        char words[64];
        size_t length = strcspn(at, " ");
        (void)snprintf(text, sizeof text, "%s %.*s", example, (int)length, at);
        (void)snprintf(words, sizeof words, "'%.*s' at column %zu says again", (int)length,
                       at, sizeof example + 1);
        refuse(text, strlen(text), words);
        bool is_optional = *at == 's' || *at == 'w' || !strncmp(at, "cpu", 3);
        (void)snprintf(text, sizeof text, "%.*s%s", (int)(at - example), example,
                       at + length);
        if (is_optional) {
            (void)parsed(text);
        } else {
            refuse(text, strlen(text), "the line lacks ");
        }
    }
}

/* One word of the example replaced. */
static void refuse_word(const char *word, const char *by, const char *why)
{
    char text[MLAI_PLAN_LINE_BYTES];
    char words[160];
    const char *at = strstr(example, word);
    assert_non_null(at);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - example), example, by,
                   at + strlen(word));
    (void)snprintf(words, sizeof words, "'%s' at column %td %s", by, at - example + 1, why);
    refuse(text, strlen(text), words);
}

static void what_is_no_word_is_refused_by_name_and_column(void **state)
{
    (void)state;
    const char *no_word = "is no word of a plan";
    refuse_word("h128", "h2147483648", "is more than 2147483647");
    refuse_word("d512+64", "d512+99999999999", "is more than 2147483647");
    refuse_word("n4096", "n9223372036854775808", "is more than a number can be");
    refuse_word("x0.0721687824", "x1e39", "is more than a float can be");
    refuse_word("x0.0721687824", "x0.00000000000000000000000000000001", "has more digits");
    const char *const words[][2] = {
        {"h128", "h-1"},          {"h128", "h"},           {"h128", "h+1"},
        {"h128", "h1.5"},         {"h128", "h128,"},       {"h128", "H128"},
        {"h128", "g128"},         {"h128", "h0x10"},       {"d512+64", "d512+"},
        {"d512+64", "d512+64+1"}, {"d512+64", "+64"},      {"d512+64", "d512-64"},
        {"causal", "causal1"},    {"causal", "half"},      {"fp8_g128", "fp8_g"},
        {"q:bf16", "q:fp8"},      {"o:bf16", "bf"},        {"x0.0721687824", "x0x1p-4"},
        {"x0.0721687824", "x1e"}, {"cpu:avx2", "cpu:mmx"}, {"x0.0721687824", "x1\x01"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        refuse_word(words[i][0], words[i][1], no_word);
    }
    refuse("", 0, "the line lacks a mode, for example decode");
    refuse("    ", 4, "the line lacks a mode");
    refuse("decode h1 d64", 13, "the line lacks +NUMBER");
}

static void lines_with_bytes_that_no_line_has_are_refused(void **state)
{
    (void)state;
    static char text[100000];
    memset(text, ' ', sizeof text);
    memcpy(text, example, sizeof example - 1);
    refuse(text, sizeof text, "the line has 100000 characters");
    memcpy(text, example, sizeof example);
    refuse(text, sizeof example,
           "'x0.0721687824' at column 107 is no word"); /* its NUL included */
    memset(text, 'h', MLAI_PLAN_LINE_BYTES);
    refuse(text, MLAI_PLAN_LINE_BYTES - 1, "hhh'... at column 1 is no word of a plan");
}

static int run_suite(void)
{
    const struct CMUnitTest of_plans[] = {
        cmocka_unit_test(a_plan_made_from_a_line_describes_itself_by_that_line),
    };
    const struct CMUnitTest of_lines[] = {
        cmocka_unit_test(caps_come_back_from_their_line),
        cmocka_unit_test(a_line_says_what_it_says),
        cmocka_unit_test(every_word_is_said_once),
        cmocka_unit_test(what_is_no_word_is_refused_by_name_and_column),
        cmocka_unit_test(lines_with_bytes_that_no_line_has_are_refused),
    };
    int num_failed = rig_is_on_gpu ? 0 : cmocka_run_group_tests(of_lines, NULL, NULL);
    return num_failed + cmocka_run_group_tests(of_plans, NULL, NULL);
}

int main(void)
{
    return gpu_suite("plan_line", run_suite);
}
