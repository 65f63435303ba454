/* The demo tokenizer against what the tokenizers library gave: every vector. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/json.h"
#include "model/tokenizer.h"
#include "support/books.h"

static mla_context books;
static tokenizer *demo;

static int open_demo(void **state)
{
    (void)state;
    mla_error err = {0};
    books = books_open(NULL);
    if (tokenizer_open(&books, TEST_MODELS "/demo", &demo, &err) != MLA_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    return 0;
}

static int close_demo(void **state)
{
    (void)state;
    tokenizer_close(&demo);
    return books_now(&books) == 0 ? 0 : -1;
}

static json_t *load(const char *name)
{
    char path[512];
    json_error_t error;
    (void)snprintf(path, sizeof path, "%s/demo/%s", TEST_DATA, name);
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
    assert_non_null(root);
    return root;
}

static void check_ids(const char *text, const token_list *list, const json_t *ids)
{
    bool is_same = list->num == json_array_size(ids);
    for (size_t i = 0; is_same && i < list->num; i++) {
        is_same = list->ids[i] == json_integer_value(json_array_get(ids, i));
    }
    if (!is_same) {
        fail_msg("\"%.60s\" gave %zu ids, wanted %zu", text, list->num,
                 json_array_size(ids));
    }
}

static void check_encoding(const json_t *vector)
{
    const json_t *text = json_object_get(vector, "text");
    token_list list = {0};
    mla_error err = {0};
    mla_status status =
        tokenizer_encode(demo, json_string_value(text), json_string_length(text),
                         TOKENIZER_PARSE_SPECIAL, &list, &err);
    if (status != MLA_OK) {
        fail_msg("%s", err.message);
    }
    check_ids(json_string_value(text), &list, json_object_get(vector, "ids"));
    token_list_free(&list);
}

static void every_text_of_the_vectors_gives_its_ids(void **state)
{
    (void)state;
    json_t *root = load("tokenizer_vectors.json");
    const json_t *list = json_object_get(root, "encode");
    assert_true(json_array_size(list) > 100);
    for (size_t i = 0; i < json_array_size(list); i++) {
        check_encoding(json_array_get(list, i));
    }
    json_decref(root);
}

static void every_chat_text_gives_its_ids(void **state)
{
    (void)state;
    json_t *root = load("chat_vectors.json");
    assert_true(json_array_size(root) > 4);
    for (size_t i = 0; i < json_array_size(root); i++) {
        check_encoding(json_array_get(root, i));
    }
    json_decref(root);
}

typedef struct decoded {
    char bytes[4096], text[4096];
    size_t num_bytes, num_text;
} decoded;

static void decode(const json_t *ids, decoded *out)
{
    detokenizer state = {.num_held = 0};
    *out = (decoded){.num_bytes = 0};
    for (size_t i = 0; i < json_array_size(ids); i++) {
        size_t bytes;
        const char *token = tokenizer_bytes_of(
            demo, (int32_t)json_integer_value(json_array_get(ids, i)), &bytes);
        assert_true(out->num_bytes + bytes < 1000);
        memcpy(out->bytes + out->num_bytes, token, bytes);
        out->num_bytes += bytes;
        out->num_text += detokenizer_feed(&state, token, bytes, out->text + out->num_text);
    }
    out->num_text += detokenizer_finish(&state, out->text + out->num_text);
}

static void check_decoding(const json_t *vector)
{
    decoded got;
    char hex[4096];
    const json_t *text = json_object_get(vector, "text");
    decode(json_object_get(vector, "ids"), &got);
    hex[0] = 0;
    for (size_t i = 0; i < got.num_bytes; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)got.bytes[i]);
    }
    assert_string_equal(hex, json_string_value(json_object_get(vector, "bytes_hex")));
    assert_int_equal(got.num_text, json_string_length(text));
    assert_memory_equal(got.text, json_string_value(text), got.num_text);
}

static void every_decoding_of_the_vectors_gives_its_bytes_and_text(void **state)
{
    (void)state;
    json_t *root = load("tokenizer_vectors.json");
    const json_t *list = json_object_get(root, "decode");
    assert_true(json_array_size(list) > 10);
    for (size_t i = 0; i < json_array_size(list); i++) {
        check_decoding(json_array_get(list, i));
    }
    json_decref(root);
}

static void the_ends_and_the_size_are_the_files(void **state)
{
    (void)state;
    assert_true(tokenizer_adds_bos(demo));
    assert_int_equal(tokenizer_bos(demo), 0);
    assert_int_equal(tokenizer_eos(demo), 1);
    assert_int_equal(tokenizer_vocab_size(demo), 4096);
    assert_true(tokenizer_is_special(demo, 0));
    assert_false(tokenizer_is_special(demo, 4082)); /* <|User|> */
    assert_false(tokenizer_is_special(demo, 500));
}

/* Mongolian vowel separator: no white space since Unicode 6.3, whatever PCRE2 says. The
 * pieces show in the ids: each is encoded by itself. */
static void u_180e_is_no_space(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a", "\xe1\xa0\x8e", "\n", "b"};
    token_list whole = {0};
    token_list parts = {0};
    size_t at = 0;
    assert_int_equal(tokenizer_encode(demo, "a\xe1\xa0\x8e\nb", 6, 0, &whole, NULL),
                     MLA_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(
            tokenizer_encode(demo, pieces[i], strlen(pieces[i]), 0, &parts, NULL), MLA_OK);
        assert_true(at + parts.num <= whole.num);
        assert_memory_equal(whole.ids + at, parts.ids, parts.num * sizeof(int32_t));
        at += parts.num;
        token_list_free(&parts);
    }
    assert_int_equal(at, whole.num);
    token_list_free(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_of_the_vectors_gives_its_ids),
        cmocka_unit_test(every_chat_text_gives_its_ids),
        cmocka_unit_test(every_decoding_of_the_vectors_gives_its_bytes_and_text),
        cmocka_unit_test(the_ends_and_the_size_are_the_files),
        cmocka_unit_test(u_180e_is_no_space),
    };
    return cmocka_run_group_tests_name("tokenizer_demo", tests, open_demo, close_demo);
}
