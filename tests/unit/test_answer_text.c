/* The text of an answer: however its tokens cut it, the same bytes come out, cut at the first
 * stop string, and nothing that may yet become one comes early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/answer_text.h"
#include "support/must.h"
#include "support/random.h"
#include "support/tiny_model.h"

static tiny_model tiny;
static mla_context *context;
static tokenizer *words;

static int start(void **state)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    mla_error err = {0};
    (void)state;
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = 1;
    tiny = tiny_model_write();
    must(mla_context_create(&options, &context, &err), &err);
    must(tokenizer_open(context, tiny.dir, &words, &err), &err);
    return 0;
}

static int end(void **state)
{
    mla_error err = {0};
    (void)state;
    tokenizer_close(&words);
    must(mla_context_destroy(&context, &err), &err);
    tiny_model_remove(&tiny);
    return 0;
}

typedef struct said {
    char text[2048];
    size_t num, num_before_end;
    int32_t stop_string, num_tokens;
} said;

/* Each byte of `text` as a token of its own, until a stop string was found. */
static said say(const engine_request *request, const char *text, bool ends_with_eos)
{
    said out = {.num = 0};
    answer_text state;
    answer_text_begin(&state, words, request);
    for (const char *at = text; *at && state.stop_string < 0; at++) {
        engine_event event = {.token = -1, .index = out.num_tokens++};
        for (int32_t id = 0; id < 256 && event.token < 0; id++) {
            size_t bytes = 0;
            const char *piece = tokenizer_bytes_of(words, id, &bytes);
            if (bytes == 1 && piece[0] == *at) {
                event.token = id;
            }
        }
        assert_true(event.token >= 0);
        assert_true(out.num + answer_text_room(&state, event.token) <= sizeof out.text);
        out.num += answer_text_add(&state, &event, out.text + out.num);
    }
    if (ends_with_eos) {
        engine_event event = {.token = TINY_EOS, .is_end = true, .index = out.num_tokens};
        out.num += answer_text_add(&state, &event, out.text + out.num);
    }
    out.num_before_end = out.num;
    out.num += answer_text_end(&state, out.text + out.num);
    out.text[out.num] = 0;
    out.stop_string = state.stop_string;
    return out;
}

static void check_stops(const char *const stops[4], const char *text, const char *expected,
                        int32_t expected_stop)
{
    engine_text texts[4];
    engine_request request = {.stops = texts};
    for (; request.num_stops < 4 && stops[request.num_stops]; request.num_stops++) {
        const char *stop = stops[request.num_stops];
        texts[request.num_stops] = (engine_text){stop, strlen(stop)};
    }
    said out = say(&request, text, false);
    assert_string_equal(out.text, expected);
    assert_int_equal(out.stop_string, expected_stop);
}

static void text_is_cut_at_the_first_stop_string(void **state)
{
    (void)state;
    check_stops((const char *[4]){"END"}, "abcENDdef", "abc", 0);
    check_stops((const char *[4]){"END"}, "abcENENDx", "abcEN", 0);
    check_stops((const char *[4]){"aab"}, "aaaab", "aa", 0);
    check_stops((const char *[4]){"\n\n", "x"}, "one\ntwo\n\nthree", "one\ntwo", 0);
    check_stops((const char *[4]){"zz", "b"}, "abzz", "a", 1);
    check_stops((const char *[4]){"bc", "abc"}, "xabcd", "x", 1);
    check_stops((const char *[4]){"END"}, "abcEN", "abcEN", -1);
    check_stops((const char *[4]){"\xc3\xa9"}, "caf\xc3\xa9!", "caf", 0);
    check_stops((const char *[4]){NULL}, "abc", "abc", -1);
}

static void what_may_become_a_stop_string_is_held_back(void **state)
{
    (void)state;
    const engine_text stop = {"END", 3};
    const engine_request request = {.stops = &stop, .num_stops = 1};
    assert_int_equal(say(&request, "abcEN", false).num_before_end, 3);
    assert_int_equal(say(&request, "abcENx", false).num_before_end, 6);
    assert_int_equal(say(&request, "abcE", false).num_before_end, 3);
}

static void the_stop_string_stays_where_it_is_wanted(void **state)
{
    (void)state;
    const engine_text stop = {"END", 3};
    const engine_request request = {.stops = &stop, .num_stops = 1, .keeps_stop = true};
    assert_string_equal(say(&request, "abcENDdef", false).text, "abcEND");
}

static void no_stop_string_counts_before_min_tokens(void **state)
{
    (void)state;
    const engine_text stop = {"b", 1};
    engine_request request = {.stops = &stop, .num_stops = 1, .min_tokens = 3};
    assert_string_equal(say(&request, "abcabc", false).text, "abca");
    request.min_tokens = 2;
    assert_string_equal(say(&request, "abcabc", false).text, "a");
}

static void end_tokens_and_special_ones_are_left_out_unless_wanted(void **state)
{
    (void)state;
    engine_request request = {.num_stops = 0};
    size_t bytes = 0;
    const char *eos = tokenizer_bytes_of(words, TINY_EOS, &bytes);
    assert_string_equal(say(&request, "a", true).text, "a");
    request.keeps_stop = true;
    assert_string_equal(say(&request, "a", true).text, "a");
    request.keeps_special = true;
    said out = say(&request, "a", true);
    assert_int_equal(out.num, 1 + bytes);
    assert_memory_equal(out.text + 1, eos, bytes);
}

static void characters_come_whole(void **state)
{
    (void)state;
    const engine_request request = {.num_stops = 0};
    said out = say(&request, "\xe2\x82", false);
    assert_int_equal(out.num_before_end, 0);
    assert_string_equal(out.text, "\xef\xbf\xbd");
    assert_string_equal(say(&request, "\xe2\x82\xac", false).text, "\xe2\x82\xac");
}

/* Where the whole text has its first stop string, by another way. */
static size_t first_stop(const char *text, const engine_text *stops, int32_t num)
{
    size_t first = strlen(text);
    for (int32_t i = 0; i < num; i++) {
        const char *at = strstr(text, stops[i].data);
        first = at && (size_t)(at - text) < first ? (size_t)(at - text) : first;
    }
    return first;
}

static void drawn_texts_are_cut_where_a_search_of_the_whole_says(void **state)
{
    (void)state;
    rng random = rng_start("drawn_texts_are_cut_where_a_search_of_the_whole_says");
    for (int32_t trial = 0; trial < 3000; trial++) {
        char text[64] = {0};
        char stops[3][8] = {{0}};
        engine_text texts[3];
        engine_request request = {.stops = texts, .num_stops = 3};
        for (int64_t i = rng_between(&random, 0, 60); i > 0; i--) {
            text[i - 1] = (char)('a' + rng_between(&random, 0, 2));
        }
        size_t length = (size_t)rng_between(&random, 1, 6); /* one length: no ties by end */
        for (int32_t s = 0; s < 3; s++) {
            for (size_t i = 0; i < length; i++) {
                stops[s][i] = (char)('a' + rng_between(&random, 0, 2));
            }
            texts[s] = (engine_text){stops[s], length};
        }
        said out = say(&request, text, false);
        size_t cut = first_stop(text, texts, 3);
        assert_int_equal(out.num, cut);
        assert_memory_equal(out.text, text, cut);
        assert_int_equal(out.stop_string >= 0, cut < strlen(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_at_the_first_stop_string),
        cmocka_unit_test(what_may_become_a_stop_string_is_held_back),
        cmocka_unit_test(the_stop_string_stays_where_it_is_wanted),
        cmocka_unit_test(no_stop_string_counts_before_min_tokens),
        cmocka_unit_test(end_tokens_and_special_ones_are_left_out_unless_wanted),
        cmocka_unit_test(characters_come_whole),
        cmocka_unit_test(drawn_texts_are_cut_where_a_search_of_the_whole_says),
    };
    return cmocka_run_group_tests(tests, start, end);
}
