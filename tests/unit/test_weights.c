/* The tensors of a checkpoint against the family's table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/safetensors.h"
#include "model/weights.h"
#include "support/books.h"
#include "support/tiny_model.h"

static mla_status load(mla_context *books, const char *dir, model_config *config,
                       model_weights *weights, mla_error *err)
{
    MLAI_TRY(model_config_read(&books->ledger, dir, config, err));
    return model_weights_open(books, dir, config, weights, err);
}

static void the_demo_model_resolves_whole(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    model_config config;
    model_weights weights = {0};
    mla_error err = {0};
    if (load(&books, TEST_MODELS "/demo", &config, &weights, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(weights.embedding.num_out, 4096);
    assert_int_equal(weights.lm_head.num_in, 256);
    assert_true(weights.lm_head.data != weights.embedding.data);
    assert_null(weights.layers[0].experts);
    assert_non_null(weights.layers[0].mlp.down.data);
    assert_null(weights.layers[0].q.data);
    for (int layer = 1; layer < 4; layer++) {
        assert_null(weights.layers[layer].mlp.down.data);
        assert_non_null(weights.layers[layer].shared_experts.up.data);
        assert_int_equal(weights.layers[layer].router_bias.num, 16);
        assert_int_equal(weights.layers[layer].kv_a.num_out, 576);
        assert_int_equal(weights.layers[layer].kv_b.num_out, 8 * 64);
        for (int expert = 0; expert < 16; expert++) {
            assert_int_equal(weights.layers[layer].experts[expert].down.num_out, 256);
        }
    }
    assert_int_equal(mlai_ledger_now(&books.ledger, MLA_SPACE_HOST, MLA_FOR_WEIGHTS),
                     15098056);
    model_weights_close(&weights);
    assert_int_equal(books_now(&books), 0);
}

static const char single[] = "model.safetensors";

static mla_status try_load(const tiny_model *tiny, mla_error *err)
{
    mla_context books = books_open(NULL);
    model_config config;
    model_weights weights = {0};
    mla_status status = load(&books, tiny->dir, &config, &weights, err);
    if (status == MLA_OK) {
        model_weights_close(&weights);
    }
    assert_int_equal(books_now(&books), 0);
    return status;
}

static void check_refused(const tiny_model *tiny, mla_status wanted, const char *words,
                          const char *more_words)
{
    mla_error err = {0};
    mla_status status = try_load(tiny, &err);
    if (status != wanted || !strstr(err.message, words) ||
        !strstr(err.message, more_words)) {
        fail_msg("wanted %s, %s; status %d: %s", words, more_words, (int)status,
                 err.message);
    }
    tiny_model_remove(tiny);
}

static void values_are_the_files_bytes_where_they_are(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    model_config config;
    model_weights weights = {0};
    tiny_model tiny = tiny_model_write();
    size_t num_bytes;
    unsigned char *bytes = tiny_model_get(&tiny, single, &num_bytes);
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    assert_int_equal(load(&books, tiny.dir, &config, &weights, NULL), MLA_OK);
    const unsigned char *data = bytes + 8 + header;
    size_t embedding = (size_t)2 * TINY_VOCAB * 16;
    assert_memory_equal(weights.embedding.data, data, embedding);
    assert_memory_equal(weights.norm.data, data + embedding, 32);
    assert_memory_equal(weights.lm_head.data, data + embedding + 32, embedding);
    const mlp_weights *shared = &weights.layers[1].shared_experts;
    assert_memory_equal(shared->down.data, bytes + num_bytes - 256, 256);
    assert_int_equal(weights.embedding.dtype, MLA_BF16);
    model_weights_close(&weights);
    model_weights_close(&weights); /* twice is harmless */
    free(bytes);
    tiny_model_remove(&tiny);
}

static void a_missing_tensor_is_named(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, single, "layers.0.self_attn.kv_b_proj",
                     "layers.0.self_attn.kv_c_proj");
    check_refused(&tiny, MLA_ERR_CORRUPT, "model.layers.0.self_attn.kv_b_proj.weight",
                  "missing");
    tiny = tiny_model_write();
    tiny_model_patch(&tiny, single, "experts.3.up_proj", "experts.4.up_proj");
    check_refused(&tiny, MLA_ERR_CORRUPT, "model.layers.1.mlp.experts.3.up_proj.weight",
                  "missing");
}

static void a_tensor_left_over_is_named(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"noaux_tc\"", "\"greedy\"");
    check_refused(&tiny, MLA_ERR_CORRUPT, "model.layers.1.mlp.gate.e_score_correction_bias",
                  "left over");
    tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"tie_word_embeddings\": false",
                     "\"tie_word_embeddings\": true");
    check_refused(&tiny, MLA_ERR_CORRUPT, "lm_head.weight", "left over");
    tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"num_hidden_layers\": 2",
                     "\"num_hidden_layers\": 1");
    check_refused(&tiny, MLA_ERR_CORRUPT, "model.layers.1.", "left over");
}

static void layers_that_predict_further_are_known_and_not_read(void **state)
{
    (void)state;
    mla_error err = {0};
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"num_hidden_layers\": 2",
                     "\"num_hidden_layers\": 1");
    tiny_model_patch(&tiny, "config.json", "\"num_nextn_predict_layers\": 0",
                     "\"num_nextn_predict_layers\": 1");
    if (try_load(&tiny, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    tiny_model_remove(&tiny);
}

static void another_shape_is_named_with_both_sizes(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"v_head_dim\": 8", "\"v_head_dim\": 12");
    check_refused(&tiny, MLA_ERR_CORRUPT, "kv_b_proj.weight is [32, 64]", "[40, 64]");
    tiny = tiny_model_write();
    tiny_model_patch(&tiny, single, "\"shape\": [80, 16]", "\"shape\": [16, 80]");
    check_refused(&tiny, MLA_ERR_CORRUPT, "kv_a_proj_with_mqa.weight is [16, 80]",
                  "[80, 16]");
    tiny = tiny_model_write(); /* the first vector: model.norm.weight */
    tiny_model_patch(&tiny, single, "\"shape\": [16],", "\"shape\":[4,4],");
    check_refused(&tiny, MLA_ERR_CORRUPT, "model.norm.weight is [4, 4]", "[16]");
}

static void a_type_that_is_not_read_is_named(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, single, "embed_tokens.weight\": {\"dtype\": \"BF16\"",
                     "embed_tokens.weight\": {\"dtype\": \"F16\" ");
    check_refused(&tiny, MLA_ERR_UNSUPPORTED, "model.embed_tokens.weight", "F16");
}

static void a_config_that_counts_more_than_the_file_takes_no_memory_for_it(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    model_config config;
    model_weights weights = {0};
    mla_error err = {0};
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"num_hidden_layers\": 2",
                     "\"num_hidden_layers\": 1024");
    tiny_model_patch(&tiny, "config.json", "\"n_routed_experts\": 4",
                     "\"n_routed_experts\": 4096");
    assert_int_equal(load(&books, tiny.dir, &config, &weights, &err), MLA_ERR_CORRUPT);
    assert_non_null(strstr(err.message, "model.layers.2."));
    assert_true(books.ledger.cell[MLA_SPACE_HOST][MLA_FOR_CONTEXT].peak_bytes < 200000);
    tiny_model_remove(&tiny);
}

static void a_truncated_file_and_an_empty_one_are_refused(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_write();
    size_t num_bytes;
    unsigned char *bytes = tiny_model_get(&tiny, single, &num_bytes);
    tiny_model_put(&tiny, single, bytes, num_bytes - 1);
    check_refused(&tiny, MLA_ERR_CORRUPT, "shared_experts.down_proj.weight", "outside");
    tiny = tiny_model_write();
    tiny_model_put(&tiny, single, "", 0);
    check_refused(&tiny, MLA_ERR_CORRUPT, single, "0 bytes");
    tiny = tiny_model_write();
    tiny_model_drop(&tiny, single);
    check_refused(&tiny, MLA_ERR_ARGUMENT, single, "No such file");
    free(bytes);
}

static void mapped_bytes_count_against_the_limit(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    model_config config;
    model_weights weights = {0};
    mla_error err = {0};
    tiny_model tiny = tiny_model_write();
    size_t num_bytes;
    free(tiny_model_get(&tiny, single, &num_bytes));
    assert_int_equal(model_config_read(&books.ledger, tiny.dir, &config, &err), MLA_OK);
    books.ledger.limit_bytes = num_bytes;
    assert_int_equal(model_weights_open(&books, tiny.dir, &config, &weights, &err),
                     MLA_ERR_NO_MEMORY);
    assert_non_null(strstr(err.message, single));
    assert_int_equal(books_now(&books), 0);
    tiny_model_remove(&tiny);
}

/* --- shards: the one file cut in two by a second header over the same data is not needed;
 * a file of one tensor beside the whole one is enough to see every rule. */

static const char extra_name[] = "extra.safetensors";
static const char index_name[] = "model.safetensors.index.json";

static void put_extra(const tiny_model *tiny, const char *tensor)
{
    unsigned char file[256] = {0};
    int length = snprintf((char *)file + 8, sizeof file - 8,
                          "{\"%s\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": "
                          "[0, 4]}}",
                          tensor);
    file[0] = (unsigned char)length;
    tiny_model_put(tiny, extra_name, file, 8 + (size_t)length + 4);
}

/* An index of every tensor of the tiny model in whole.safetensors, and of `more`. */
static tiny_model sharded(const char *more)
{
    tiny_model tiny = tiny_model_write();
    size_t num_bytes;
    unsigned char *bytes = tiny_model_get(&tiny, single, &num_bytes);
    mla_context books = books_open(NULL);
    tensor_table table;
    assert_int_equal(
        safetensors_parse(&books.ledger, single, bytes, num_bytes, &table, NULL), MLA_OK);
    enum { ROOM = 1 << 14 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    int used = snprintf(text, ROOM, "{\"metadata\": {}, \"weight_map\": {");
    for (size_t i = 0; i < table.num; i++) {
        used +=
            snprintf(text + used, ROOM - (size_t)used, "%s\"%s\": \"whole.safetensors\"",
                     i > 0 ? ", " : "", table.tensors[i].name);
    }
    used += snprintf(text + used, ROOM - (size_t)used, "%s}}", more);
    assert_true(used < ROOM);
    tiny_model_put_text(&tiny, index_name, text);
    tiny_model_put(&tiny, "whole.safetensors", bytes, num_bytes);
    tiny_model_drop(&tiny, single);
    tensor_table_free(&table);
    free(text);
    free(bytes);
    return tiny;
}

static void shards_load_as_one(void **state)
{
    (void)state;
    mla_error err = {0};
    tiny_model tiny = sharded("");
    if (try_load(&tiny, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    tiny_model_remove(&tiny);
    tiny = sharded(", \"model.layers.2.norm.weight\": \"extra.safetensors\"");
    put_extra(&tiny, "model.layers.2.norm.weight");
    tiny_model_patch(&tiny, "config.json", "\"num_nextn_predict_layers\": 0",
                     "\"num_nextn_predict_layers\": 1");
    if (try_load(&tiny, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    tiny_model_remove(&tiny);
}

static void shards_and_their_index_must_agree(void **state)
{
    (void)state;
    tiny_model tiny = sharded(", \"x\": \"extra.safetensors\"");
    check_refused(&tiny, MLA_ERR_ARGUMENT, extra_name, "No such file");
    tiny = sharded(", \"x\": \"extra.safetensors\"");
    put_extra(&tiny, "y");
    check_refused(&tiny, MLA_ERR_CORRUPT, "tensor y", extra_name);
    tiny = sharded(", \"x\": \"whole.safetensors\"");
    check_refused(&tiny, MLA_ERR_CORRUPT, "tensor x", "whole.safetensors");
    tiny = sharded(", \"x\": \"extra.safetensors\"");
    put_extra(&tiny, "lm_head.weight");
    check_refused(&tiny, MLA_ERR_CORRUPT, "lm_head.weight", extra_name);
    tiny = sharded(", \"x\": \"extra.safetensors\"");
    put_extra(&tiny, "x");
    check_refused(&tiny, MLA_ERR_CORRUPT, "tensor x", "left over");
}

static void an_index_names_files_of_its_own_directory_only(void **state)
{
    (void)state;
    static const char *const names[] = {"\"../x\"", "\"/etc/passwd\"", "\".\"", "\"\"",
                                        "7"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char more[64];
        (void)snprintf(more, sizeof more, ", \"x\": %s", names[i]);
        tiny_model tiny = sharded(more);
        check_refused(&tiny, MLA_ERR_CORRUPT, "weight_map x", "this directory");
    }
    tiny_model tiny = sharded("");
    tiny_model_put_text(&tiny, index_name, "{\"weight_map\": {}}");
    check_refused(&tiny, MLA_ERR_CORRUPT, "weight_map", index_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo_model_resolves_whole),
        cmocka_unit_test(values_are_the_files_bytes_where_they_are),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(a_tensor_left_over_is_named),
        cmocka_unit_test(layers_that_predict_further_are_known_and_not_read),
        cmocka_unit_test(another_shape_is_named_with_both_sizes),
        cmocka_unit_test(a_type_that_is_not_read_is_named),
        cmocka_unit_test(a_config_that_counts_more_than_the_file_takes_no_memory_for_it),
        cmocka_unit_test(a_truncated_file_and_an_empty_one_are_refused),
        cmocka_unit_test(mapped_bytes_count_against_the_limit),
        cmocka_unit_test(shards_load_as_one),
        cmocka_unit_test(shards_and_their_index_must_agree),
        cmocka_unit_test(an_index_names_files_of_its_own_directory_only),
    };
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
