/* Several choices, their seeds and their logprobs, on the demo model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/api_rig.h"
#include "support/demo.h"

static api_rig rig;

#define USER(text) "\"messages\":[{\"role\":\"user\",\"content\":\"" text "\"}]"

static void check_text(const json_t *root, const char *path, const char *expected)
{
    assert_string_equal(api_string_at(root, path), expected);
}

static bool is_null(const json_t *root, const char *path)
{
    return json_is_null(api_at(root, path));
}

static void choice_i_is_the_answer_with_seed_plus_i(void **state)
{
    (void)state;
    json_t *all = api_rig_good(&rig, API_COMPLETION,
                               "{\"prompt\":[\"The server\",\"int\"],\"n\":3,\"seed\":40}");
    assert_int_equal(json_array_size(api_at(all, "choices")), 6);
    for (int i = 0; i < 6; i++) {
        char body[128];
        char path[32];
        (void)snprintf(body, sizeof body, "{\"prompt\":\"%s\",\"seed\":%d}",
                       i < 3 ? "The server" : "int", 40 + i % 3);
        json_t *one = api_rig_good(&rig, API_COMPLETION, body);
        (void)snprintf(path, sizeof path, "choices.%d.text", i);
        check_text(all, path, api_string_at(one, "choices.0.text"));
        (void)snprintf(path, sizeof path, "choices.%d.index", i);
        assert_int_equal(api_int_at(all, path), i);
        json_decref(one);
    }
    assert_int_equal(api_int_at(all, "usage.prompt_tokens"), 3 + 2); /* once a prompt */
    assert_string_not_equal(api_string_at(all, "choices.0.text"),
                            api_string_at(all, "choices.1.text"));
    json_decref(all);
}

static void without_a_seed_no_two_answers_are_the_same(void **state)
{
    (void)state;
    json_t *all = api_rig_good(&rig, API_COMPLETION, "{\"prompt\":\"The\",\"n\":4}");
    json_t *again = api_rig_good(&rig, API_COMPLETION, "{\"prompt\":\"The\",\"n\":4}");
    assert_string_not_equal(api_string_at(all, "choices.0.text"),
                            api_string_at(all, "choices.3.text"));
    assert_string_not_equal(api_string_at(all, "choices.0.text"),
                            api_string_at(again, "choices.0.text"));
    json_decref(all);
    json_decref(again);
}

static void logprobs_of_a_chat_have_tokens_bytes_and_the_likeliest(void **state)
{
    (void)state;
    json_t *reply = api_rig_good(&rig, API_CHAT,
                                 "{\"temperature\":0,\"logprobs\":true,\"top_logprobs\":2,"
                                 "\"max_tokens\":4," USER("Hello") "}");
    const json_t *content = api_at(reply, "choices.0.logprobs.content");
    char text[64] = "";
    assert_int_equal(json_array_size(content), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *token = json_array_get(content, i);
        (void)strncat(text, api_string_at(token, "token"), 16);
        assert_int_equal(json_array_size(api_at(token, "bytes")),
                         strlen(api_string_at(token, "token")));
        double logprob = json_number_value(api_at(token, "logprob"));
        assert_true(logprob <= 0 && logprob > -10);
        assert_int_equal(json_array_size(api_at(token, "top_logprobs")), 2);
        check_text(token, "top_logprobs.0.token", api_string_at(token, "token"));
        assert_true(json_number_value(api_at(token, "top_logprobs.0.logprob")) == logprob);
        assert_true(json_number_value(api_at(token, "top_logprobs.1.logprob")) < logprob);
    }
    check_text(reply, "choices.0.message.content", text);
    json_decref(reply);
}

static void logprobs_of_a_completion_are_four_lists(void **state)
{
    (void)state;
    json_t *reply = api_rig_good(&rig, API_COMPLETION,
                                 "{\"temperature\":0,\"logprobs\":2,\"max_tokens\":4,"
                                 "\"prompt\":\"The server\"}");
    const json_t *logprobs = api_at(reply, "choices.0.logprobs");
    const char *text = api_string_at(reply, "choices.0.text");
    assert_int_equal(json_array_size(api_at(logprobs, "tokens")), 4);
    assert_int_equal(json_array_size(api_at(logprobs, "token_logprobs")), 4);
    assert_int_equal(json_array_size(api_at(logprobs, "top_logprobs")), 4);
    assert_int_equal(json_array_size(api_at(logprobs, "text_offset")), 4);
    for (size_t i = 0; i < 4; i++) {
        const char *token =
            json_string_value(json_array_get(api_at(logprobs, "tokens"), i));
        const json_t *tops = json_array_get(api_at(logprobs, "top_logprobs"), i);
        size_t offset =
            (size_t)json_integer_value(json_array_get(api_at(logprobs, "text_offset"), i));
        assert_int_equal(strncmp(text + offset, token, strlen(token)), 0);
        assert_int_equal(json_object_size(tops), 2); /* greedy: its own is one of them */
        assert_non_null(json_object_get(tops, token));
    }
    json_decref(reply);
    reply = api_rig_good(&rig, API_COMPLETION,
                         "{\"logprobs\":0,\"max_tokens\":2,\"prompt\":\"The server\"}");
    assert_true(is_null(reply, "choices.0.logprobs.top_logprobs"));
    assert_int_equal(json_array_size(api_at(reply, "choices.0.logprobs.tokens")), 2);
    json_decref(reply);
}

static void a_sampled_token_outside_the_likeliest_is_told_as_well(void **state)
{
    (void)state;
    json_t *reply = api_rig_good(&rig, API_COMPLETION,
                                 "{\"logprobs\":1,\"max_tokens\":64,\"temperature\":2,"
                                 "\"seed\":7,\"prompt\":\"The server\"}");
    const json_t *tops = api_at(reply, "choices.0.logprobs.top_logprobs");
    size_t num_with_two = 0;
    for (size_t i = 0; i < json_array_size(tops); i++) {
        size_t num = json_object_size(json_array_get(tops, i));
        assert_true(num == 1 || num == 2);
        num_with_two += num == 2;
    }
    assert_true(num_with_two > 0);
    json_decref(reply);
}

static void a_bias_bans_or_forces_a_token(void **state)
{
    (void)state;
    json_t *reply = api_rig_good(&rig, API_COMPLETION,
                                 "{\"prompt\":\"a\",\"max_tokens\":3,\"temperature\":0,"
                                 "\"logit_bias\":{\"786\":100},\"return_token_ids\":true}");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            json_integer_value(json_array_get(api_at(reply, "choices.0.token_ids"), i)),
            786);
    }
    json_decref(reply);
}

static void a_large_reply_is_written_in_slices_each_with_a_wake(void **state)
{
    (void)state;
    enum { MOST = (1 << 16) + 40 * 21 * 64 + 4096 }; /* a slice, and one choice over it */
    static const char body[] =
        "{\"prompt\":\"a\",\"max_tokens\":40,\"n\":32,\"ignore_eos\":"
        "true,\"logprobs\":20}";
    api_call *call = NULL;
    api_failure failure;
    mla_error err = {0};
    bool is_done = false;
    int num_writes = 0;
    byte_buffer out = {.context = rig.context};
    assert_true(
        api_call_open(&rig.settings, API_COMPLETION, body, strlen(body), &call, &failure));
    api_call_submit(call);
    api_rig_run(&rig);
    while (!is_done) {
        size_t before = out.num;
        int64_t num_wakes = atomic_load(&rig.num_wakes);
        assert_true(api_call_has_news(call));
        must(api_call_write(call, &out, &is_done, &err), &err);
        assert_int_equal(atomic_load(&rig.num_wakes) - num_wakes, is_done ? 0 : 1);
        assert_true(out.num - before < MOST);
        num_writes++;
    }
    assert_true(num_writes > 4);
    json_t *reply = json_loadb(out.data, out.num, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_array_size(api_at(reply, "choices")), 32);
    assert_int_equal(api_int_at(reply, "choices.31.index"), 31);
    assert_int_equal(api_int_at(reply, "usage.completion_tokens"), 32 * 40);
    json_decref(reply);
    api_call_close(&call);
    byte_buffer_free(&out);
    api_rig_check(&rig);
}

static int open_rig(void **state)
{
    const api_rig_options options = {.has_prefix_cache = true};
    (void)state;
    api_rig_open(&rig, &options);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    api_rig_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choice_i_is_the_answer_with_seed_plus_i),
        cmocka_unit_test(without_a_seed_no_two_answers_are_the_same),
        cmocka_unit_test(logprobs_of_a_chat_have_tokens_bytes_and_the_likeliest),
        cmocka_unit_test(logprobs_of_a_completion_are_four_lists),
        cmocka_unit_test(a_sampled_token_outside_the_likeliest_is_told_as_well),
        cmocka_unit_test(a_bias_bans_or_forces_a_token),
        cmocka_unit_test(a_large_reply_is_written_in_slices_each_with_a_wake),
    };
    return cmocka_run_group_tests_name("api choices", tests, open_rig, close_rig);
}
