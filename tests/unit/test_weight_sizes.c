/* The bytes of weights: every format by hand, and a small model tensor by tensor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/weight_sizes.h"
#include "support/books.h"

static size_t bytes_of(weight_format format, size_t rows, size_t columns,
                       weight_split split, size_t num_ranks)
{
    const weight_tensor tensor = {.num_rows = rows,
                                  .num_columns = columns,
                                  .format = format,
                                  .split = split,
                                  .num_ranks = num_ranks};
    byte_sum sum = {0};
    weight_tensor_count(&tensor, 1, &sum);
    assert_false(sum.is_overflown);
    return sum.bytes;
}

static size_t whole(weight_format format, size_t rows, size_t columns)
{
    return bytes_of(format, rows, columns, SPLIT_NONE, 1);
}

static void each_format_counts_its_values_and_its_scales(void **state)
{
    (void)state;
    assert_int_equal(whole(WEIGHT_F32, 3, 5), 60);
    assert_int_equal(whole(WEIGHT_BF16, 3, 5), 30);
    assert_int_equal(whole(WEIGHT_FP8_BLOCK128, 576, 7168), 576 * 7168 + 4 * 5 * 56);
    assert_int_equal(whole(WEIGHT_MXFP8, 3, 33), 3 * 33 + 3 * 2);
    assert_int_equal(whole(WEIGHT_MXFP4, 3072, 3584), 3072 * 1792 + 3072 * 112);
    assert_int_equal(whole(WEIGHT_MXFP4, 3, 33), 3 * 17 + 3 * 2);
    assert_int_equal(whole(WEIGHT_MXFP4_X4T, 3072, 3584), 3072 * 1792 + 3072 * (1 + 14));
    assert_int_equal(whole(WEIGHT_INT4_GROUP32, 3072, 3584), 3072 * 1792 + 2 * 3072 * 112);
}

static void a_rank_has_the_scales_of_every_block_that_its_share_touches(void **state)
{
    (void)state;
    size_t aligned = bytes_of(WEIGHT_FP8_BLOCK128, 256, 128, SPLIT_ROWS, 2);
    assert_int_equal(aligned, 128 * 128 + 4);
    /* [96, 192) lies in two blocks of rows. */
    size_t across = bytes_of(WEIGHT_FP8_BLOCK128, 192, 128, SPLIT_ROWS, 2);
    assert_int_equal(across, 96 * 128 + 4 * 2);
    size_t columns = bytes_of(WEIGHT_MXFP4, 10, 96, SPLIT_COLUMNS, 2);
    assert_int_equal(columns, 10 * 24 + 10 * 2);
    /* Of 10 rows the first of 3 ranks has 4. */
    assert_int_equal(bytes_of(WEIGHT_BF16, 10, 2, SPLIT_ROWS, 3), 4 * 2 * 2);
}

static void formats_have_names(void **state)
{
    (void)state;
    for (int i = WEIGHT_F32; i <= WEIGHT_INT4_GROUP32; i++) {
        const char *name = weight_format_name((weight_format)i);
        assert_non_null(name);
        assert_int_equal(weight_format_of_name(name), i);
    }
    assert_int_equal(weight_format_of_name("fp3"), 0);
    assert_null(weight_format_name((weight_format)0));
}

static void a_sum_remembers_that_it_did_not_fit(void **state)
{
    (void)state;
    const weight_tensor tensor = {
        .num_rows = SIZE_MAX / 2, .num_columns = 2, .format = WEIGHT_BF16, .num_ranks = 1};
    byte_sum sum = {0};
    weight_tensor_count(&tensor, 1, &sum);
    byte_sum_add(&sum, 1, 1);
    assert_true(sum.is_overflown);
}

#define SMALL                                                                              \
    "{\"model_type\": \"deepseek_v3\", \"vocab_size\": 101, \"hidden_size\": 64, "         \
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"q_lora_rank\": null, "        \
    "\"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 32, "           \
    "\"v_head_dim\": 32, \"intermediate_size\": 128, \"n_routed_experts\": 4, "            \
    "\"num_experts_per_tok\": 2, \"moe_intermediate_size\": 32, \"n_shared_experts\": 1, " \
    "\"first_k_dense_replace\": 1, \"num_nextn_predict_layers\": 1}"

static const weight_storage plain = {.experts = WEIGHT_BF16,
                                     .linears = WEIGHT_BF16,
                                     .others = WEIGHT_BF16,
                                     .num_ranks = 1,
                                     .expert_ranks = 1};

static model_shape shape_of(const char *text)
{
    mla_context books = books_open(NULL);
    json_document doc = {0};
    model_shape shape;
    mla_error err = {0};
    assert_int_equal(
        document_parse(&books.ledger, "config.json", text, strlen(text), &doc, &err),
        MLA_OK);
    mla_status status = model_shape_read(&books.ledger, &doc, doc.root, &shape, &err);
    document_close(&doc);
    assert_int_equal(books_now(&books), 0);
    if (status != MLA_OK) {
        fail_msg("%s", err.message);
    }
    return shape;
}

static weight_sizes sizes_of(const model_shape *shape, const weight_storage *storage)
{
    weight_sizes sizes;
    mla_error err = {0};
    if (weight_sizes_of(shape, storage, &sizes, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    return sizes;
}

/* q 128 x 64, kv_a 96 x 64, its norm 64, kv_b 128 x 64, o 64 x 64 */
enum { ATTENTION = 8192 + 6144 + 64 + 8192 + 4096 };

static void a_small_model_is_the_sum_of_its_tensors(void **state)
{
    (void)state;
    model_shape shape = shape_of(SMALL);
    weight_sizes sizes = sizes_of(&shape, &plain);
    assert_int_equal(sizes.embedding_bytes, 2 * 2 * 101 * 64);
    assert_int_equal(sizes.attention_bytes, 2 * 2 * ATTENTION);
    assert_int_equal(sizes.mlp_bytes, 2 * (3 * 128 * 64 + 3 * 32 * 64));
    assert_int_equal(sizes.expert_bytes, 2 * 4 * 3 * 32 * 64);
    /* The last norm, two norms a layer, the router, and its bias in f32. */
    assert_int_equal(sizes.other_bytes, 2 * (64 + 4 * 64 + 4 * 64) + 4 * 4);
    assert_int_equal(sizes.bytes, sizes.embedding_bytes + sizes.attention_bytes +
                                      sizes.mlp_bytes + sizes.expert_bytes +
                                      sizes.other_bytes);
    /* All are in two bytes but the bias. */
    assert_int_equal(sizes.num_parameters, (sizes.bytes - 4 * 4) / 2 + 4);
}

static void an_mtp_layer_has_a_whole_layer_and_the_tables_again(void **state)
{
    (void)state;
    model_shape shape = shape_of(SMALL);
    weight_sizes sizes = sizes_of(&shape, &plain);
    enum {
        LAYER = 2 * 64 + ATTENTION + 4 * 64 + 4 * 3 * 32 * 64 + 3 * 32 * 64,
        FURTHER = 3 * 64 + 64 * 128 + 2 * 101 * 64,
    };
    assert_int_equal(sizes.num_mtp_parameters, LAYER + FURTHER + 4);
    assert_int_equal(sizes.mtp_bytes, 2 * (LAYER + FURTHER) + 4 * 4);
}

static void ranks_cut_heads_widths_and_the_vocabulary(void **state)
{
    (void)state;
    weight_storage storage = plain;
    storage.num_ranks = 2;
    model_shape shape = shape_of(SMALL);
    weight_sizes sizes = sizes_of(&shape, &storage);
    assert_int_equal(sizes.embedding_bytes, 2 * 2 * 51 * 64); /* of 101 rows */
    assert_int_equal(sizes.attention_bytes, 2 * 2 * (4096 + 6144 + 64 + 4096 + 2048));
    assert_int_equal(sizes.mlp_bytes, 2 * (3 * 64 * 64 + 3 * 16 * 64));
    assert_int_equal(sizes.expert_bytes, 4 * 3 * 32 * 64);
    assert_int_equal(sizes.other_bytes, 2 * (64 + 4 * 64 + 4 * 64) + 4 * 4);
    weight_sizes one = sizes_of(&shape, &plain);
    assert_int_equal(sizes.num_parameters, one.num_parameters);
}

static void expert_ranks_deal_whole_experts(void **state)
{
    (void)state;
    weight_storage storage = plain;
    storage.num_ranks = 2;
    storage.expert_ranks = 2;
    storage.experts = WEIGHT_FP8_BLOCK128;
    model_shape shape = shape_of(SMALL);
    weight_sizes sizes = sizes_of(&shape, &storage);
    assert_int_equal(sizes.expert_bytes, 2 * 3 * (32 * 64 + 4));
}

static void ranks_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    weight_storage storage = plain;
    weight_sizes sizes;
    mla_error err = {0};
    model_shape shape = shape_of(SMALL);
    storage.num_ranks = 3;
    assert_int_equal(weight_sizes_of(&shape, &storage, &sizes, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "3 tensor ranks do not divide 2 heads"));
    shape.config.intermediate_size = 129;
    storage.num_ranks = 2;
    assert_int_equal(weight_sizes_of(&shape, &storage, &sizes, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "2 ranks do not divide the 129 rows of "));
}

static void a_hybrid_has_states_in_place_of_rows(void **state)
{
    (void)state;
    model_shape shape = shape_of(
        "{\"model_type\": \"kimi_k3\", \"text_config\": {\"model_type\": \"kimi_linear\", "
        "\"vocab_size\": 10, \"hidden_size\": 64, \"num_hidden_layers\": 3, "
        "\"num_attention_heads\": 2, \"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, "
        "\"qk_rope_head_dim\": 32, \"v_head_dim\": 32, \"intermediate_size\": 128, "
        "\"num_experts\": 4, \"num_experts_per_token\": 2, \"moe_intermediate_size\": 32, "
        "\"routed_expert_hidden_size\": 16, \"first_k_dense_replace\": 3, "
        "\"mla_use_output_gate\": true, \"attn_res_block_size\": 2, "
        "\"linear_attn_config\": {\"num_heads\": 2, \"head_dim\": 16, "
        "\"short_conv_kernel_size\": 4, \"use_full_rank_gate\": true, "
        "\"kda_layers\": [1, 3]}}}");
    assert_true(model_shape_is_kda(&shape, 0) && model_shape_is_kda(&shape, 2));
    assert_false(model_shape_is_kda(&shape, 1) || model_shape_is_kda(&shape, 3));
    assert_int_equal(model_shape_num_latent_layers(&shape), 1);
    weight_sizes sizes = sizes_of(&shape, &plain);
    /* q, k, v, gate, out 32 x 64; f_a 16 x 64, f_b 32 x 16, b 2 x 64; in f32: convolutions
     * 3 x 32 x 4, dt_bias 32. */
    enum { KDA = 2 * (5 * 2048 + 1024 + 512 + 128) + 4 * (384 + 32), GATE = 64 * 64 };
    assert_int_equal(sizes.attention_bytes, 2 * KDA + 2 * (ATTENTION + GATE));
    /* Norms: 1 + 3 x 2; residual mixes: 3 x 4 + 2; A_log and o_norm in f32. */
    assert_int_equal(sizes.other_bytes, 2 * 64 * (1 + 6 + 12 + 2) + 2 * 4 * (16 + 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_format_counts_its_values_and_its_scales),
        cmocka_unit_test(a_rank_has_the_scales_of_every_block_that_its_share_touches),
        cmocka_unit_test(formats_have_names),
        cmocka_unit_test(a_sum_remembers_that_it_did_not_fit),
        cmocka_unit_test(a_small_model_is_the_sum_of_its_tensors),
        cmocka_unit_test(an_mtp_layer_has_a_whole_layer_and_the_tables_again),
        cmocka_unit_test(ranks_cut_heads_widths_and_the_vocabulary),
        cmocka_unit_test(expert_ranks_deal_whole_experts),
        cmocka_unit_test(ranks_that_do_not_divide_are_refused),
        cmocka_unit_test(a_hybrid_has_states_in_place_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
