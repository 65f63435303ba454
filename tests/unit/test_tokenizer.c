/* The rules of tokenizer.json on a tiny one, and what a hostile one gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/tokenizer.h"
#include "support/books.h"
#include "support/tiny_model.h"

static const char file_name[] = "tokenizer.json";
static const char config_name[] = "tokenizer_config.json";

/* A tiny tokenizer with one thing changed (from NULL: with none). */
static mla_status open_with(mla_context *books, const char *file, const char *from,
                            const char *to, tokenizer **out, mla_error *err)
{
    tiny_model tiny = tiny_model_write();
    if (from) {
        tiny_model_patch(&tiny, file, from, to);
    }
    *books = books_open(NULL);
    mla_status status = tokenizer_open(books, tiny.dir, out, err);
    tiny_model_remove(&tiny);
    return status;
}

static tokenizer *must_open(mla_context *books, const char *from, const char *to)
{
    mla_error err = {0};
    tokenizer *t = NULL;
    if (open_with(books, file_name, from, to, &t, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    return t;
}

static void close_and_check(mla_context *books, tokenizer *t)
{
    tokenizer_close(&t);
    assert_null(t);
    tokenizer_close(&t);
    assert_int_equal(books_now(books), 0);
}

/* wanted: ids, ended by -1 */
static void check_text(const tokenizer *t, const char *text, size_t bytes, unsigned flags,
                       const int32_t *wanted)
{
    token_list list = {0};
    mla_error err = {0};
    if (tokenizer_encode(t, text, bytes, flags, &list, &err) != MLA_OK) {
        fail_msg("%s: %s", text, err.message);
    }
    size_t num = 0;
    for (; wanted[num] >= 0; num++) {
        if (num >= list.num || list.ids[num] != wanted[num]) {
            fail_msg("\"%s\": id %zu of %zu is %d, wanted %d", text, num, list.num,
                     num < list.num ? list.ids[num] : -1, wanted[num]);
        }
    }
    assert_int_equal(list.num, num);
    token_list_free(&list);
    token_list_free(&list);
}

#define CHECK(t, text, flags, ...)                                                         \
    check_text(t, text, sizeof(text) - 1, flags, (const int32_t[]){__VA_ARGS__, -1})

static void pairs_merge_lowest_rank_first_and_leftmost(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, NULL, NULL);
    CHECK(t, "a", 0, 'a');
    CHECK(t, "aa", 0, 256);
    CHECK(t, "aaa", 0, 256, 'a');
    CHECK(t, "aaaa", 0, 258);
    CHECK(t, "aaaaa", 0, 258, 'a');
    CHECK(t, "aaab", 0, 256, 257);
    CHECK(t, "aab", 0, 256, 'b'); /* "a a" has a lower rank than "a b" */
    CHECK(t, "abc", 0, 257, 'c'); /* "a b" before "b c" */
    CHECK(t, "bc a", 0, 259, 260);
    CHECK(t, "a1a", 0, 'a', '1', 'a');
    CHECK(t, "\xc3\xa9", 0, 0xc3, 0xa9);
    check_text(t, "a\0a", 3, 0, (const int32_t[]){'a', 0, 'a', -1});
    check_text(t, NULL, 0, 0, (const int32_t[]){-1});
    close_and_check(&books, t);
}

/* With the digit in sight, \s+(?!\S) would leave the last space to it; but the digit was cut
 * off before, so both spaces are one piece, and merge. */
static void later_patterns_see_only_what_earlier_ones_left(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    mla_error err = {0};
    tokenizer *t = NULL;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, file_name, "\"bc\": 259", "\"\\u0120\\u0120\": 259");
    tiny_model_patch(&tiny, file_name, "\"b c\"", "\"\\u0120 \\u0120\"");
    if (tokenizer_open(&books, tiny.dir, &t, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    CHECK(t, "a  1", 0, 'a', 259, '1');
    CHECK(t, "a  b", 0, 'a', ' ', ' ', 'b');
    tiny_model_remove(&tiny);
    close_and_check(&books, t);
}

/* The first pattern takes all; the second cuts what it took, so that "1a" never meets. */
static void later_patterns_cut_what_earlier_ones_matched(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    tokenizer *t = NULL;
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, file_name, "\"bc\": 259", "\"1a\": 259");
    tiny_model_patch(&tiny, file_name, "\"b c\"", "\"1 a\"");
    tiny_model_patch(&tiny, file_name, "\\\\p{N}{1,3}", "[^x]+");
    assert_int_equal(tokenizer_open(&books, tiny.dir, &t, NULL), MLA_OK);
    CHECK(t, "1a", 0, '1', 'a');
    tiny_model_remove(&tiny);
    close_and_check(&books, t);
}

static void added_tokens_are_found_only_where_asked(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, NULL, NULL);
    CHECK(t, "a<eos>a", TOKENIZER_PARSE_SPECIAL, 'a', TINY_EOS, 'a');
    CHECK(t, "<user><bos>", TOKENIZER_PARSE_SPECIAL, TINY_USER, TINY_BOS);
    CHECK(t, "<eos", TOKENIZER_PARSE_SPECIAL, '<', 'e', 'o', 's');
    CHECK(t, "<eos>", 0, '<', 'e', 'o', 's', '>');
    CHECK(t, "<<eos>>", TOKENIZER_PARSE_SPECIAL, '<', TINY_EOS, '>');
    close_and_check(&books, t);
}

static void the_bos_is_added_once(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, NULL, NULL);
    const unsigned both = TOKENIZER_ADD_BOS | TOKENIZER_PARSE_SPECIAL;
    CHECK(t, "a", TOKENIZER_ADD_BOS, TINY_BOS, 'a');
    CHECK(t, "", TOKENIZER_ADD_BOS, TINY_BOS);
    CHECK(t, "<bos>a", both, TINY_BOS, 'a');
    CHECK(t, "<bo", both, TINY_BOS, '<', 'b', 'o');
    CHECK(t, "<bos>", TOKENIZER_ADD_BOS, TINY_BOS, '<', 'b', 'o', 's', '>');
    assert_true(tokenizer_adds_bos(t));
    assert_int_equal(tokenizer_bos(t), TINY_BOS);
    assert_int_equal(tokenizer_eos(t), TINY_EOS);
    close_and_check(&books, t);
}

#define USER_FLAGS                                                                         \
    "\"content\": \"<user>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": "     \
    "false, \"normalized\": false"

static void added_tokens_take_the_spaces_that_they_say(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t =
        must_open(&books, USER_FLAGS, "\"content\": \"<user>\", \"lstrip\": true");
    CHECK(t, "a  <user>  b", TOKENIZER_PARSE_SPECIAL, 'a', TINY_USER, ' ', ' ', 'b');
    CHECK(t, "<eos> <user>", TOKENIZER_PARSE_SPECIAL, TINY_EOS, TINY_USER);
    close_and_check(&books, t);
    t = must_open(&books, USER_FLAGS, "\"content\": \"<user>\", \"rstrip\": true");
    CHECK(t, "a <user> \xe3\x80\x80<user>", TOKENIZER_PARSE_SPECIAL, 'a', ' ', TINY_USER,
          TINY_USER);
    close_and_check(&books, t);
    t = must_open(&books, USER_FLAGS,
                  "\"content\": \"<user>\", \"lstrip\": true, \"rstrip\": true");
    CHECK(t, "<user> <user> a", TOKENIZER_PARSE_SPECIAL, TINY_USER, TINY_USER, 'a');
    close_and_check(&books, t);
}

static void a_single_word_stands_alone(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t =
        must_open(&books, USER_FLAGS, "\"content\": \"bob\", \"single_word\": true");
    CHECK(t, "bob", TOKENIZER_PARSE_SPECIAL, TINY_USER);
    CHECK(t, "(bob)", TOKENIZER_PARSE_SPECIAL, '(', TINY_USER, ')');
    CHECK(t, "bobs", TOKENIZER_PARSE_SPECIAL, 'b', 'o', 'b', 's');
    CHECK(t,
          "\xc3\xa9"
          "bob",
          TOKENIZER_PARSE_SPECIAL, 0xc3, 0xa9, 'b', 'o', 'b');
    CHECK(t, "bobob bob", TOKENIZER_PARSE_SPECIAL, 'b', 'o', 'b', 'o', 'b', ' ', TINY_USER);
    close_and_check(&books, t);
}

static void the_longest_of_the_leftmost_wins(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, USER_FLAGS, "\"content\": \"<eos><eos>!\"");
    CHECK(t, "<eos><eos>!", TOKENIZER_PARSE_SPECIAL, TINY_USER);
    CHECK(t, "<eos><eos>", TOKENIZER_PARSE_SPECIAL, TINY_EOS, TINY_EOS);
    close_and_check(&books, t);
}

/* The normalized ones are searched in what the others leave, whatever stands first. */
static void normalized_tokens_come_second(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t =
        must_open(&books, USER_FLAGS, "\"content\": \"a<eos>\", \"normalized\": true");
    CHECK(t, "a<eos>", TOKENIZER_PARSE_SPECIAL, 'a', TINY_EOS);
    close_and_check(&books, t);
    t = must_open(&books, USER_FLAGS, "\"content\": \"<u>\", \"normalized\": true");
    CHECK(t, "a<u><eos>", TOKENIZER_PARSE_SPECIAL, 'a', TINY_USER, TINY_EOS);
    close_and_check(&books, t);
}

/* "bc" is a token that no merge makes. */
static void a_piece_that_is_a_token_may_ignore_the_merges(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, "\"b c\", ", "");
    CHECK(t, "bc", 0, 'b', 'c');
    close_and_check(&books, t);
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, file_name, "\"b c\", ", "");
    tiny_model_patch(&tiny, file_name, "\"ignore_merges\": false",
                     "\"ignore_merges\": true");
    books = books_open(NULL);
    assert_int_equal(tokenizer_open(&books, tiny.dir, &t, NULL), MLA_OK);
    CHECK(t, "bc", 0, 259);
    CHECK(t, "bca", 0, 'b', 'c', 'a');
    tiny_model_remove(&tiny);
    close_and_check(&books, t);
}

static void bytes_that_no_text_holds_need_no_token(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, "\"\\u00c0\": 192, ", "");
    CHECK(t, "a", 0, 'a');
    close_and_check(&books, t);
}

static void merges_may_be_written_as_pairs(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, "\"aa aa\"", "[\"aa\", \"aa\"]");
    CHECK(t, "aaaa", 0, 258);
    close_and_check(&books, t);
}

static void digits_may_be_single(void **state)
{
    (void)state;
    mla_context books;
    tokenizer *t = must_open(&books, "\"pretokenizers\": [",
                             "\"pretokenizers\": [{\"type\": \"Digits\", "
                             "\"individual_digits\": true}, ");
    CHECK(t, "12a", 0, '1', '2', 'a');
    close_and_check(&books, t);
}

static void a_text_that_is_not_utf8_is_refused_with_the_offset(void **state)
{
    (void)state;
    mla_context books;
    mla_error err = {0};
    tokenizer *t = must_open(&books, NULL, NULL);
    token_list list = {0};
    assert_int_equal(tokenizer_encode(t, "ab\xff", 3, 0, &list, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "byte 2"));
    assert_non_null(strstr(err.message, "0xff"));
    assert_int_equal(tokenizer_encode(t, "\xe4\xb8", 2, 0, &list, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "byte 0"));
    assert_null(list.ids);
    close_and_check(&books, t);
}

static void an_id_that_is_none_has_no_bytes(void **state)
{
    (void)state;
    mla_context books;
    size_t bytes = 7;
    tokenizer *t = must_open(&books, NULL, NULL);
    static const int32_t ids[] = {-1, INT32_MIN, TINY_VOCAB, INT32_MAX};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        assert_non_null(tokenizer_bytes_of(t, ids[i], &bytes));
        assert_int_equal(bytes, 0);
        assert_false(tokenizer_is_special(t, ids[i]));
    }
    assert_memory_equal(tokenizer_bytes_of(t, TINY_EOS, &bytes), "<eos>", 5);
    assert_int_equal(bytes, 5);
    assert_memory_equal(tokenizer_bytes_of(t, 260, &bytes), " a", 2);
    assert_int_equal(tokenizer_vocab_size(t), TINY_VOCAB);
    assert_true(tokenizer_is_special(t, TINY_BOS) && !tokenizer_is_special(t, TINY_USER));
    close_and_check(&books, t);
}

static void a_long_piece_is_encoded_in_its_stride(void **state)
{
    (void)state;
    enum { NUM = 1 << 20 };
    mla_context books;
    token_list list = {0};
    tokenizer *t = must_open(&books, NULL, NULL);
    char *text = malloc(NUM);
    assert_non_null(text);
    memset(text, 'a', NUM); /* quadratic work on this would take hours */
    assert_int_equal(tokenizer_encode(t, text, NUM, 0, &list, NULL), MLA_OK);
    assert_int_equal(list.num, NUM / 4);
    assert_int_equal(list.ids[NUM / 4 - 1], 258);
    token_list_free(&list);
    memset(text, ' ', NUM);
    assert_int_equal(tokenizer_encode(t, text, NUM, 0, &list, NULL), MLA_OK);
    assert_int_equal(list.num, NUM);
    token_list_free(&list);
    free(text);
    close_and_check(&books, t);
}

typedef struct hostile {
    const char *file, *from, *to;
    mla_status status;
    const char *words;
} hostile;

static const hostile hostile_files[] = {
    {file_name, "\"type\": \"BPE\"", "\"type\": \"Unigram\"", MLA_ERR_UNSUPPORTED,
     "Unigram"},
    {file_name, "\"aa\": 256", "\"aa\": -1", MLA_ERR_CORRUPT, "\"aa\" has id -1"},
    {file_name, "\"aa\": 256", "\"aa\": 4294967552", MLA_ERR_CORRUPT, "4294967552"},
    {file_name, "\"aa\": 256", "\"aa\": 1000000", MLA_ERR_CORRUPT, "1000000"},
    {file_name, "\"aa\": 256", "\"aa\": 257", MLA_ERR_CORRUPT, "257"},
    {file_name, "\"aa\": 256", "\"aa\": \"x\"", MLA_ERR_CORRUPT, "\"x\""},
    {file_name, "\"id\": 262", "\"id\": 257", MLA_ERR_CORRUPT, "257"},
    {file_name, "\"id\": 262", "\"id\": 1000000", MLA_ERR_CORRUPT, "1000000"},
    {file_name, "\"id\": 262", "\"id\": -2", MLA_ERR_CORRUPT, "-2"},
    {file_name, "\"content\": \"<eos>\"", "\"content\": \"\"", MLA_ERR_CORRUPT, "empty"},
    {file_name, "\"content\": \"<eos>\"", "\"content\": \"<bos>\"", MLA_ERR_CORRUPT,
     "both \"<bos>\""},
    {file_name, "\"content\": \"<eos>\", \"single_word\": false",
     "\"content\": \"<eos>\", \"single_word\": 0", MLA_ERR_CORRUPT, "single_word"},
    {file_name, "\"a b\"", "\"ab\"", MLA_ERR_CORRUPT, "merge 1"},
    {file_name, "\"a b\"", "\"a b c\"", MLA_ERR_CORRUPT, "merge 1"},
    {file_name, "\"a b\"", "\"a z\"", MLA_ERR_CORRUPT, "merge 1"},
    {file_name, "\"a b\"", "[\"a\"]", MLA_ERR_CORRUPT, "merge 1"},
    {file_name, "\"a b\"", "3", MLA_ERR_CORRUPT, "merge 1"},
    {file_name, "\"a b\"", "\" \"", MLA_ERR_CORRUPT, "merge 1"},
    {file_name, "\"\\u0041\": 65, ", "", MLA_ERR_UNSUPPORTED, "0x41"},
    {file_name, "\"byte_fallback\": false", "\"byte_fallback\": true", MLA_ERR_UNSUPPORTED,
     "byte_fallback"},
    {file_name, "\"dropout\": null", "\"dropout\": 0.1", MLA_ERR_UNSUPPORTED, "dropout"},
    {file_name, "\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"</w>\"",
     MLA_ERR_UNSUPPORTED, "end_of_word_suffix"},
    {file_name, "\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}",
     MLA_ERR_UNSUPPORTED, "NFC"},
    {file_name, "\"decoder\": {\"type\": \"ByteLevel\"}",
     "\"decoder\": {\"type\": \"Metaspace\"}", MLA_ERR_UNSUPPORTED, "Metaspace"},
    {file_name, "\"type\": \"Split\"", "\"type\": \"Punctuation\"", MLA_ERR_UNSUPPORTED,
     "Punctuation"},
    {file_name, "\"Isolated\"", "\"Removed\"", MLA_ERR_UNSUPPORTED, "Removed"},
    {file_name, "\"invert\": false", "\"invert\": true", MLA_ERR_UNSUPPORTED, "invert"},
    {file_name, "\"Regex\"", "\"String\"", MLA_ERR_UNSUPPORTED, "Regex"},
    {file_name, "\"add_prefix_space\": false", "\"add_prefix_space\": true",
     MLA_ERR_UNSUPPORTED, "add_prefix_space"},
    {file_name, "{\"type\": \"ByteLevel\"", "{\"type\": \"Digits\"", MLA_ERR_UNSUPPORTED,
     "ByteLevel"},
    {file_name, "\\\\p{N}{1,3}", "(a", MLA_ERR_UNSUPPORTED, "pre_tokenizer"},
    {file_name, "\\\\p{N}{1,3}", "\\\\w+", MLA_ERR_UNSUPPORTED, "\\w"},
    {file_name, "\"pretokenizers\": [", "\"pretokenizers\": 3, \"x\": [", MLA_ERR_CORRUPT,
     "pretokenizers"},
    {file_name, "\"vocab\"", "\"vocab_\"", MLA_ERR_CORRUPT, "vocab is missing"},
    {file_name, "\"merges\"", "\"merges_\"", MLA_ERR_CORRUPT, "merges is missing"},
    {file_name, "\"version\": \"1.0\"", "\"version\": \"1.0", MLA_ERR_CORRUPT, "line 1"},
    {config_name, "\"<bos>\"", "\"<none>\"", MLA_ERR_CORRUPT, "<none>"},
    {config_name, "\"<bos>\"", "7", MLA_ERR_CORRUPT, "bos_token"},
    {config_name, "\"<bos>\"", "null", MLA_ERR_CORRUPT, "add_bos_token"},
    {config_name, "\"add_bos_token\": true", "\"add_bos_token\": 1", MLA_ERR_CORRUPT,
     "add_bos_token"},
};

static void every_hostile_file_is_one_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile_files / sizeof hostile_files[0]; i++) {
        mla_context books;
        mla_error err = {0};
        tokenizer *t = NULL;
        mla_status status = open_with(&books, hostile_files[i].file, hostile_files[i].from,
                                      hostile_files[i].to, &t, &err);
        if (status != hostile_files[i].status ||
            !strstr(err.message, hostile_files[i].words)) {
            fail_msg("%s: status %d, %s", hostile_files[i].to, (int)status, err.message);
        }
        assert_null(t);
        assert_int_equal(books_now(&books), 0);
    }
}

static void a_tokenizer_config_may_be_missing(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    tokenizer *t = NULL;
    tiny_model tiny = tiny_model_write();
    tiny_model_drop(&tiny, config_name);
    assert_int_equal(tokenizer_open(&books, tiny.dir, &t, NULL), MLA_OK);
    assert_int_equal(tokenizer_bos(t), -1);
    assert_int_equal(tokenizer_eos(t), -1);
    assert_false(tokenizer_adds_bos(t));
    CHECK(t, "a", TOKENIZER_ADD_BOS, 'a');
    tiny_model_remove(&tiny);
    close_and_check(&books, t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_merge_lowest_rank_first_and_leftmost),
        cmocka_unit_test(later_patterns_see_only_what_earlier_ones_left),
        cmocka_unit_test(later_patterns_cut_what_earlier_ones_matched),
        cmocka_unit_test(added_tokens_are_found_only_where_asked),
        cmocka_unit_test(the_bos_is_added_once),
        cmocka_unit_test(added_tokens_take_the_spaces_that_they_say),
        cmocka_unit_test(a_single_word_stands_alone),
        cmocka_unit_test(the_longest_of_the_leftmost_wins),
        cmocka_unit_test(normalized_tokens_come_second),
        cmocka_unit_test(a_piece_that_is_a_token_may_ignore_the_merges),
        cmocka_unit_test(bytes_that_no_text_holds_need_no_token),
        cmocka_unit_test(merges_may_be_written_as_pairs),
        cmocka_unit_test(digits_may_be_single),
        cmocka_unit_test(a_text_that_is_not_utf8_is_refused_with_the_offset),
        cmocka_unit_test(an_id_that_is_none_has_no_bytes),
        cmocka_unit_test(a_long_piece_is_encoded_in_its_stride),
        cmocka_unit_test(every_hostile_file_is_one_sentence),
        cmocka_unit_test(a_tokenizer_config_may_be_missing),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
