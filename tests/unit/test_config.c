/* config.json: every key, every refusal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/config.h"
#include "model/family.h"
#include "support/books.h"
#include "support/tiny_model.h"

static mla_status read_config(const char *dir, model_config *out, mla_error *err)
{
    mla_context books = books_open(NULL);
    mla_status status = model_config_read(&books.ledger, dir, out, err);
    assert_int_equal(books_now(&books), 0);
    return status;
}

static void must_read(const char *dir, model_config *out)
{
    mla_error err = {0};
    if (read_config(dir, out, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
}

static void the_demo_config_is_read_as_written(void **state)
{
    (void)state;
    model_config c;
    must_read(TEST_MODELS "/demo", &c);
    assert_string_equal(c.family->model_types[0], "deepseek_v3");
    assert_int_equal(c.vocab_size, 4096);
    assert_int_equal(c.hidden_size, 256);
    assert_int_equal(c.num_layers, 4);
    assert_int_equal(c.num_heads, 8);
    assert_int_equal(c.q_lora_rank, 128);
    assert_int_equal(c.kv_lora_rank, 512);
    assert_int_equal(c.qk_nope_head_dim, 32);
    assert_int_equal(c.qk_rope_head_dim, 64);
    assert_int_equal(c.v_head_dim, 32);
    assert_int_equal(c.intermediate_size, 640);
    assert_int_equal(c.moe_intermediate_size, 64);
    assert_int_equal(c.num_experts, 16);
    assert_int_equal(c.experts_per_token, 4);
    assert_int_equal(c.num_shared_experts, 1);
    assert_int_equal(c.num_groups, 4);
    assert_int_equal(c.top_groups, 2);
    assert_int_equal(c.score, ROUTER_SIGMOID);
    assert_int_equal(c.choice, ROUTER_NOAUX_TC);
    assert_true(c.is_topk_normed && c.rope.is_interleaved && !c.rope.is_yarn);
    assert_false(c.has_attention_bias || c.is_embedding_tied);
    assert_true(c.routed_scale == 2.5F && c.rms_norm_eps == 1e-6F);
    assert_true(c.rope.theta == 10000.0 && c.rope.factor == 1.0);
    assert_true(c.softmax_scale == (float)(1.0 / sqrt(96.0)));
    assert_int_equal(c.max_positions, 2048);
    assert_int_equal(c.bos_token, 0);
    assert_int_equal(c.num_eos_tokens, 1);
    assert_int_equal(c.eos_tokens[0], 1);
    assert_false(model_config_is_moe_layer(&c, 0));
    assert_true(model_config_is_moe_layer(&c, 1) && model_config_is_moe_layer(&c, 3));
}

/* A tiny config with one thing changed. */
static model_config with(const char *from, const char *to)
{
    model_config c;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", from, to);
    must_read(tiny.dir, &c);
    tiny_model_remove(&tiny);
    return c;
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9)) {
        fail_msg("%.12g is not %.12g", value, wanted);
    }
}

static void m_has_its_reference_values(void **state)
{
    (void)state;
    near(rope_m(40, 0.707), 1.2608037774);
    near(rope_m(40, 0.707) * rope_m(40, 0.707), 1.5896261652);
    near(rope_m(40, 1), 1.3688879454);
    near(rope_m(40, 1) * rope_m(40, 1), 1.8738542070);
    near(rope_m(32, 1) * rope_m(32, 1), 1.8132604340);
    near(rope_m(64, 1) * rope_m(64, 1), 2.0047397017);
    near(rope_m(1, 1), 1);
    near(rope_m(0.5, 1), 1);
    near(rope_m(40, 0), 1);
}

#define YARN                                                                               \
    "\"factor\": 40, \"original_max_position_embeddings\": 4096, \"beta_fast\": 32, "      \
    "\"beta_slow\": 1, \"mscale\": 0.9, \"mscale_all_dim\": 1.0"
#define NO_ROPE "\"rope_theta\": 10000.0, \"rope_scaling\": null"

static void check_yarn(const model_config *c)
{
    assert_true(c->rope.is_yarn);
    near(c->rope.theta, 10000);
    near(c->rope.factor, 40);
    near(c->rope.beta_fast, 32);
    near(c->rope.beta_slow, 1);
    near(c->rope.mscale, 0.9);
    near(c->rope.mscale_all_dim, 1);
    assert_int_equal(c->rope.original_max_positions, 4096);
    /* by mscale_all_dim squared, not by mscale */
    assert_true(c->softmax_scale ==
                (float)(1.3688879454113936 * 1.3688879454113936 / sqrt(24.0)));
}

static void yarn_is_read_in_its_three_spellings(void **state)
{
    (void)state;
    model_config c = with(NO_ROPE, "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": "
                                   "\"yarn\", " YARN "}");
    check_yarn(&c);
    c = with(NO_ROPE, "\"rope_theta\": 10000, \"rope_scaling\": {\"rope_type\": "
                      "\"yarn\", " YARN "}");
    check_yarn(&c);
    c = with(NO_ROPE, "\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": "
                      "10000.0, " YARN "}");
    check_yarn(&c);
}

static void a_default_rope_scales_nothing(void **state)
{
    (void)state;
    model_config c = with(NO_ROPE, "\"rope_parameters\": {\"rope_type\": \"default\", "
                                   "\"rope_theta\": 5e4, " YARN "}");
    assert_false(c.rope.is_yarn);
    near(c.rope.theta, 5e4);
    near(c.rope.factor, 1);
    assert_true(c.softmax_scale == (float)(1 / sqrt(24.0)));
}

static void yarn_without_mscale_has_the_documented_defaults(void **state)
{
    (void)state;
    model_config c = with(NO_ROPE, "\"rope_theta\": 10000, \"rope_scaling\": {\"type\": "
                                   "\"yarn\", \"factor\": 4, "
                                   "\"original_max_position_embeddings\": 128}");
    near(c.rope.beta_fast, 32);
    near(c.rope.beta_slow, 1);
    near(c.rope.mscale, 1);
    near(c.rope.mscale_all_dim, 0);
    assert_true(c.softmax_scale == (float)(1 / sqrt(24.0)));
}

static void end_tokens_are_the_union_of_both_files(void **state)
{
    (void)state;
    model_config c;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"eos_token_id\": 262",
                     "\"eos_token_id\": [262, 7, 7]");
    tiny_model_patch(&tiny, "generation_config.json", "[262]", "[9, 262]");
    must_read(tiny.dir, &c);
    assert_int_equal(c.num_eos_tokens, 3);
    assert_int_equal(c.eos_tokens[0], 262);
    assert_int_equal(c.eos_tokens[1], 7);
    assert_int_equal(c.eos_tokens[2], 9);
    assert_int_equal(model_config_add_eos(&c, 7, NULL), MLA_OK);
    assert_int_equal(model_config_add_eos(&c, -1, NULL), MLA_OK);
    assert_int_equal(c.num_eos_tokens, 3);
    assert_int_equal(model_config_add_eos(&c, 264, NULL), MLA_ERR_CORRUPT);
    tiny_model_remove(&tiny);
}

static void a_generation_config_may_be_missing(void **state)
{
    (void)state;
    model_config c;
    tiny_model tiny = tiny_model_write();
    tiny_model_drop(&tiny, "generation_config.json");
    must_read(tiny.dir, &c);
    assert_int_equal(c.num_eos_tokens, 1);
    tiny_model_remove(&tiny);
}

static void what_a_config_leaves_unsaid_is_the_familys(void **state)
{
    (void)state;
    model_config c =
        with("\"scoring_func\": \"sigmoid\", \"topk_method\": \"noaux_tc\", ", "");
    assert_int_equal(c.score, ROUTER_SIGMOID);
    assert_int_equal(c.choice, ROUTER_NOAUX_TC);
    assert_true(c.rms_norm_eps == 1e-5F);
    assert_true(c.latent_norm_eps == 1e-6F); /* the reference code's own */
    c = with("\"rms_norm_eps\": 1e-05",
             "\"rms_norm_eps\": 1e-05, \"latent_norm_eps\": 1e-3");
    assert_true(c.latent_norm_eps == 1e-3F);
    c = with("\"q_lora_rank\": 8", "\"q_lora_rank\": null");
    assert_int_equal(c.q_lora_rank, 0);
    c = with("\"n_routed_experts\": 4", "\"n_routed_experts\": null");
    assert_int_equal(c.num_experts, 0);
    assert_false(model_config_is_moe_layer(&c, 1));
}

typedef struct refusal {
    const char *from, *to;
    mla_status status;
    const char *words[3]; /* all of them are in the sentence */
} refusal;

static void check_refusal(const refusal *bad)
{
    model_config c;
    mla_error err = {0};
    memset(&c, 0x5a, sizeof c);
    model_config before = c;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", bad->from, bad->to);
    mla_status status = read_config(tiny.dir, &c, &err);
    if (status != bad->status) {
        fail_msg("%s: status %d, %s", bad->to, (int)status, err.message);
    }
    for (int i = 0; i < 3 && bad->words[i]; i++) {
        if (!strstr(err.message, bad->words[i])) {
            fail_msg("%s is not in: %s", bad->words[i], err.message);
        }
    }
    assert_memory_equal(&c, &before, sizeof c);
    tiny_model_remove(&tiny);
}

static const refusal bad_values[] = {
    {"deepseek_v3", "llama", MLA_ERR_UNSUPPORTED, {"model_type", "llama", "deepseek_v3"}},
    {"\"model_type\": \"deepseek_v3\",", "", MLA_ERR_CORRUPT, {"model_type", "missing"}},
    {"\"vocab_size\": 264", "\"vocab_size\": 0", MLA_ERR_CORRUPT, {"vocab_size", " 0"}},
    {"\"vocab_size\": 264", "\"vocab_size\": -3", MLA_ERR_CORRUPT, {"vocab_size", "-3"}},
    {"\"vocab_size\": 264",
     "\"vocab_size\": 4294967296",
     MLA_ERR_CORRUPT,
     {"vocab_size", "4294967296", "16777216"}},
    {"\"vocab_size\": 264",
     "\"vocab_size\": \"264\"",
     MLA_ERR_CORRUPT,
     {"vocab_size", "\"264\"", "integer"}},
    {"\"vocab_size\": 264", "\"vocab_size\": 264.0", MLA_ERR_CORRUPT, {"vocab_size"}},
    {"\"num_hidden_layers\": 2",
     "\"num_hidden_layers\": 100000",
     MLA_ERR_CORRUPT,
     {"num_hidden_layers", "100000"}},
    {"\"qk_rope_head_dim\": 16",
     "\"qk_rope_head_dim\": 15",
     MLA_ERR_CORRUPT,
     {"qk_rope_head_dim", "15", "even"}},
    {"\"kv_lora_rank\": 64",
     "\"kv_lora_rank\": null",
     MLA_ERR_CORRUPT,
     {"kv_lora_rank", "null"}},
    {"\"n_group\": 2", "\"n_group\": 3", MLA_ERR_CORRUPT, {"n_group 3"}},
    {"\"topk_group\": 1", "\"topk_group\": 4", MLA_ERR_CORRUPT, {"topk_group 4"}},
    {"\"num_experts_per_tok\": 2",
     "\"num_experts_per_tok\": 3",
     MLA_ERR_CORRUPT,
     {"num_experts_per_tok 3"}},
    {"\"noaux_tc\"", "\"best_of\"", MLA_ERR_UNSUPPORTED, {"topk_method", "best_of"}},
    {"\"sigmoid\"", "\"tanh\"", MLA_ERR_UNSUPPORTED, {"scoring_func", "tanh"}},
    {"\"silu\"", "\"gelu\"", MLA_ERR_UNSUPPORTED, {"hidden_act", "gelu"}},
    {"\"rope_scaling\": null",
     "\"rope_scaling\": {\"type\": \"linear\"}",
     MLA_ERR_UNSUPPORTED,
     {"linear", "yarn"}},
    {"\"rope_scaling\": null",
     "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 0.5}",
     MLA_ERR_CORRUPT,
     {"factor", "0.5"}},
    {"\"rope_scaling\": null",
     "\"rope_scaling\": {\"type\": \"yarn\", \"attention_factor\": 2}",
     MLA_ERR_UNSUPPORTED,
     {"attention_factor"}},
    {"\"rope_theta\": 10000.0", "\"rope_theta\": 1", MLA_ERR_CORRUPT, {"rope_theta"}},
    {"\"rope_theta\": 10000.0", "\"rope_theta\": 1e400", MLA_ERR_CORRUPT, {"line 11"}},
    {"\"rms_norm_eps\": 1e-05",
     "\"rms_norm_eps\": -1",
     MLA_ERR_CORRUPT,
     {"rms_norm_eps", "-1"}},
    {"\"eos_token_id\": 262",
     "\"eos_token_id\": 264",
     MLA_ERR_CORRUPT,
     {"eos_token_id", "264"}},
    {"\"eos_token_id\": 262",
     "\"eos_token_id\": [1,2,3,4,5,6,7,8,9]",
     MLA_ERR_UNSUPPORTED,
     {"eos_token_id", "9", "8"}},
    {"\"eos_token_id\": 262",
     "\"eos_token_id\": [\"x\"]",
     MLA_ERR_CORRUPT,
     {"eos_token_id", "\"x\""}},
    {"\"attention_bias\": false",
     "\"attention_bias\": 0",
     MLA_ERR_CORRUPT,
     {"attention_bias", " 0 ", "true or false"}},
    {"\"vocab_size\": 264",
     "\"quantization_config\": {\"quant_method\": \"fp8\"}",
     MLA_ERR_UNSUPPORTED,
     {"quantization_config", "fp8"}},
    {"\"vocab_size\": 264,",
     "\"vocab_size\": 264, \"vocab_size\": 264,",
     MLA_ERR_CORRUPT,
     {"config.json", "line 2", "duplicate"}},
    {"\"vocab_size\": 264,",
     "\"vocab_size\": 264",
     MLA_ERR_CORRUPT,
     {"config.json", "line 2", "column"}},
    {"\"bfloat16\"}", "\"bfloat16\"} x", MLA_ERR_CORRUPT, {"config.json", "line 13"}},
};

static void every_bad_value_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++) {
        check_refusal(&bad_values[i]);
    }
}

static void check_dir(const char *dir, mla_status wanted, const char *words)
{
    model_config c;
    mla_error err = {0};
    mla_status status = read_config(dir, &c, &err);
    if (status != wanted || !strstr(err.message, words)) {
        fail_msg("%s: status %d, %s", dir, (int)status, err.message);
    }
}

static void a_directory_that_is_none_says_so(void **state)
{
    (void)state;
    char path[64];
    tiny_model tiny = tiny_model_empty();
    check_dir("/nonexistent/model", MLA_ERR_ARGUMENT, "No such file");
    check_dir(tiny.dir, MLA_ERR_ARGUMENT, "config.json");
    tiny_model_put_text(&tiny, "file", "{}");
    (void)snprintf(path, sizeof path, "%s/file", tiny.dir);
    check_dir(path, MLA_ERR_ARGUMENT, "Not a directory");
    tiny_model_put_text(&tiny, "config.json", "");
    check_dir(tiny.dir, MLA_ERR_CORRUPT, "config.json");
    tiny_model_put_text(&tiny, "config.json", "[1]");
    check_dir(tiny.dir, MLA_ERR_CORRUPT, "array");
    tiny_model_remove(&tiny);
}

static void a_config_beyond_its_limits_is_not_read(void **state)
{
    (void)state;
    enum { BYTES = (1 << 20) + 1 };
    static char text[BYTES];
    tiny_model tiny = tiny_model_empty();
    memset(text, '[', sizeof text);
    tiny_model_put(&tiny, "config.json", text, sizeof text);
    check_dir(tiny.dir, MLA_ERR_UNSUPPORTED, "1048577");
    tiny_model_put(&tiny, "config.json", text, sizeof text - 1);
    check_dir(tiny.dir, MLA_ERR_CORRUPT, "depth");
    tiny_model_remove(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo_config_is_read_as_written),
        cmocka_unit_test(m_has_its_reference_values),
        cmocka_unit_test(yarn_is_read_in_its_three_spellings),
        cmocka_unit_test(a_default_rope_scales_nothing),
        cmocka_unit_test(yarn_without_mscale_has_the_documented_defaults),
        cmocka_unit_test(end_tokens_are_the_union_of_both_files),
        cmocka_unit_test(a_generation_config_may_be_missing),
        cmocka_unit_test(what_a_config_leaves_unsaid_is_the_familys),
        cmocka_unit_test(every_bad_value_is_named),
        cmocka_unit_test(a_directory_that_is_none_says_so),
        cmocka_unit_test(a_config_beyond_its_limits_is_not_read),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
