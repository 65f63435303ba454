/* Every allocation of reading a checkpoint fails, once and for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/tokenizer.h"
#include "model/weights.h"
#include "support/books.h"
#include "support/fault.h"
#include "support/tiny_model.h"

static tiny_model tiny;
static tiny_model sharded;

static const char index_text[] =
    "{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"}}";

static void put_one_tensor(const char *file, const char *tensor)
{
    unsigned char bytes[128] = {0};
    int length = snprintf((char *)bytes + 8, sizeof bytes - 8,
                          "{\"%s\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": "
                          "[0, 4]}}",
                          tensor);
    bytes[0] = (unsigned char)length;
    tiny_model_put(&sharded, file, bytes, 8 + (size_t)length + 4);
}

static int write_models(void **state)
{
    (void)state;
    tiny = tiny_model_write();
    sharded = tiny_model_empty();
    tiny_model_put_text(&sharded, "model.safetensors.index.json", index_text);
    put_one_tensor("1.safetensors", "a");
    put_one_tensor("2.safetensors", "b");
    return 0;
}

static int remove_models(void **state)
{
    (void)state;
    tiny_model_remove(&tiny);
    tiny_model_remove(&sharded);
    return 0;
}

static mla_status load_weights(const mla_allocator *allocator, void *arg)
{
    (void)arg;
    mla_context books = books_open(allocator);
    model_config config;
    model_weights weights;
    mla_error err = {0};
    mla_status status = model_config_read(&books.ledger, tiny.dir, &config, &err);
    if (status == MLA_OK) {
        status = model_weights_open(&books, tiny.dir, &config, &weights, &err);
    }
    if (status == MLA_OK) {
        model_weights_close(&weights);
    }
    assert_int_equal(books_now(&books), 0); /* mapped bytes too */
    assert_int_equal(err.status, status);
    return status;
}

/* Shards need a config whose tensors they are to load; without one the refusal of what is
 * missing stands for success: it comes after the last allocation of the checkpoint. */
static mla_status load_shards(const mla_allocator *allocator, void *arg)
{
    (void)arg;
    mla_context books = books_open(allocator);
    model_config config;
    model_weights weights;
    mla_error err = {0};
    mla_context plain = books_open(NULL);
    assert_int_equal(model_config_read(&plain.ledger, tiny.dir, &config, &err), MLA_OK);
    mla_status status = model_weights_open(&books, sharded.dir, &config, &weights, &err);
    assert_int_equal(books_now(&books), 0);
    if (status == MLA_ERR_CORRUPT &&
        strstr(err.message, "is missing from the checkpoint")) {
        return MLA_OK;
    }
    return status;
}

static mla_status encode(mla_context *books, const tokenizer *t, mla_error *err)
{
    static const char text[] = "aaaa <user> 123 abc \xe4\xb8\xad some more words than fit "
                               "into the first list of token ids that is taken for them.";
    token_list list = {0};
    mla_status status = tokenizer_encode(
        t, text, sizeof text - 1, TOKENIZER_ADD_BOS | TOKENIZER_PARSE_SPECIAL, &list, err);
    if (status == MLA_OK) {
        assert_true(list.num > 64);
        token_list_free(&list);
    } else {
        assert_null(list.ids);
    }
    assert_int_equal(mlai_ledger_now(&books->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER), 0);
    return status;
}

static mla_status tokenize(const mla_allocator *allocator, void *arg)
{
    (void)arg;
    mla_context books = books_open(allocator);
    tokenizer *t = NULL;
    mla_error err = {0};
    mla_status status = tokenizer_open(&books, tiny.dir, &t, &err);
    if (status == MLA_OK) {
        status = encode(&books, t, &err);
        tokenizer_close(&t);
    }
    assert_int_equal(books_now(&books), 0);
    assert_int_equal(err.status, status);
    return status;
}

static void every_allocation_of_loading_weights_may_fail(void **state)
{
    (void)state;
    assert_true(fault_every("load_weights", load_weights, NULL, FAULT_MUST_FAIL) > 100);
}

static void every_allocation_of_loading_shards_may_fail(void **state)
{
    (void)state;
    assert_true(fault_every("load_shards", load_shards, NULL, FAULT_MUST_FAIL) > 40);
}

static void every_allocation_of_tokenizing_may_fail(void **state)
{
    (void)state;
    assert_true(fault_every("tokenize", tokenize, NULL, FAULT_MUST_FAIL) > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_loading_weights_may_fail),
        cmocka_unit_test(every_allocation_of_loading_shards_may_fail),
        cmocka_unit_test(every_allocation_of_tokenizing_may_fail),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, write_models, remove_models);
}
