/* Whole replies of both endpoints on the demo model: their form, their text, their usage, and
 * what the options do to them. */
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

static void a_chat_reply_has_every_part(void **state)
{
    (void)state;
    json_t *reply = api_rig_good(&rig, API_CHAT,
                                 "{\"temperature\":0,\"max_tokens\":40," USER("Hello") "}");
    assert_int_equal(strncmp(api_string_at(reply, "id"), "chatcmpl-", 9), 0);
    assert_int_equal(strlen(api_string_at(reply, "id")), 9 + 32);
    check_text(reply, "object", "chat.completion");
    assert_int_equal(api_int_at(reply, "created"), 1700000000);
    check_text(reply, "model", "demo");
    check_text(reply, "system_fingerprint", "mla-1.2.3");
    assert_int_equal(json_array_size(api_at(reply, "choices")), 1);
    assert_int_equal(api_int_at(reply, "choices.0.index"), 0);
    check_text(reply, "choices.0.message.role", "assistant");
    check_text(reply, "choices.0.message.content", "Hello! How can I help you?");
    assert_true(is_null(reply, "choices.0.message.refusal"));
    assert_true(is_null(reply, "choices.0.logprobs"));
    check_text(reply, "choices.0.finish_reason", "stop");
    assert_true(is_null(reply, "choices.0.stop_reason"));
    assert_int_equal(api_int_at(reply, "usage.prompt_tokens"), 6);
    assert_int_equal(api_int_at(reply, "usage.completion_tokens"), 12);
    assert_int_equal(api_int_at(reply, "usage.total_tokens"), 18);
    assert_int_equal(api_int_at(reply, "usage.prompt_tokens_details.cached_tokens"), 0);
    assert_int_equal(json_object_size(reply), 7);
    json_decref(reply);
}

static void a_completion_reply_has_every_part(void **state)
{
    (void)state;
    json_t *reply =
        api_rig_good(&rig, API_COMPLETION,
                     "{\"temperature\":0,\"max_tokens\":3,\"prompt\":\"The server\"}");
    assert_int_equal(strncmp(api_string_at(reply, "id"), "cmpl-", 5), 0);
    check_text(reply, "object", "text_completion");
    assert_true(json_is_string(api_at(reply, "choices.0.text")));
    assert_true(is_null(reply, "choices.0.logprobs"));
    check_text(reply, "choices.0.finish_reason", "length");
    assert_int_equal(api_int_at(reply, "usage.prompt_tokens"), 3); /* with BOS */
    assert_int_equal(api_int_at(reply, "usage.completion_tokens"), 3);
    assert_int_equal(json_object_size(reply), 7);
    json_decref(reply);
}

static void
a_request_without_max_tokens_gets_the_default_and_its_usage_says_so(void **state)
{
    (void)state;
    json_t *reply =
        api_rig_good(&rig, API_COMPLETION, "{\"prompt\":\"a\",\"ignore_eos\":true}");
    assert_int_equal(api_int_at(reply, "usage.completion_tokens"), 16);
    check_text(reply, "choices.0.finish_reason", "length");
    json_decref(reply);
}

static json_t *generation(int32_t i)
{
    json_t *root = demo_read_json("generations.json");
    json_t *one =
        json_incref(json_array_get(json_object_get(root, "generations"), (size_t)i));
    json_decref(root);
    return one;
}

/* The reference's answers to the letter: they have tabs, and characters of several tokens. */
static void greedy_answers_are_the_references(void **state)
{
    (void)state;
    json_t *root = demo_read_json("generations.json");
    size_t num = json_array_size(json_object_get(root, "generations"));
    json_decref(root);
    assert_true(num >= 8);
    for (size_t i = 0; i < num; i++) {
        json_t *one = generation((int32_t)i);
        char body[2048];
        char ids[1024];
        size_t bytes =
            json_dumpb(json_object_get(one, "prompt_ids"), ids, sizeof ids - 1, 0);
        assert_true(bytes < sizeof ids);
        ids[bytes] = 0;
        (void)snprintf(body, sizeof body,
                       "{\"prompt\":%s,\"temperature\":0,\"max_tokens\":%zu,"
                       "\"skip_special_tokens\":false,\"return_token_ids\":true}",
                       ids, json_array_size(json_object_get(one, "ids")));
        json_t *reply = api_rig_good(&rig, API_COMPLETION, body);
        assert_true(
            json_equal(api_at(reply, "choices.0.token_ids"), json_object_get(one, "ids")));
        assert_true(json_equal(api_at(reply, "choices.0.prompt_token_ids"),
                               json_object_get(one, "prompt_ids")));
        if (strcmp(api_string_at(one, "finish"), "length") == 0) {
            check_text(reply, "choices.0.text", api_string_at(one, "text"));
        }
        json_decref(reply);
        json_decref(one);
    }
}

static void a_stop_string_cuts_the_text_and_is_named(void **state)
{
    (void)state;
    json_t *reply =
        api_rig_good(&rig, API_CHAT,
                     "{\"temperature\":0,\"stop\":[\"zzz\",\"can I\"]," USER("Hello") "}");
    check_text(reply, "choices.0.message.content", "Hello! How ");
    check_text(reply, "choices.0.finish_reason", "stop");
    check_text(reply, "choices.0.stop_reason", "can I");
    json_decref(reply);
    reply = api_rig_good(&rig, API_CHAT,
                         "{\"temperature\":0,\"stop\":\"can I\","
                         "\"include_stop_str_in_output\":true," USER("Hello") "}");
    check_text(reply, "choices.0.message.content", "Hello! How can I");
    check_text(reply, "choices.0.stop_reason", "can I");
    json_decref(reply);
}

static void a_stop_id_ends_the_answer_and_is_named(void **state)
{
    (void)state;
    json_t *reply = api_rig_good(
        &rig, API_CHAT, "{\"temperature\":0,\"return_token_ids\":true," USER("Hello") "}");
    int64_t mark = api_int_at(reply, "choices.0.token_ids.3"); /* H el lo ! */
    char body[256];
    (void)snprintf(body, sizeof body,
                   "{\"temperature\":0,\"stop_token_ids\":[%lld]," USER("Hello") "}",
                   (long long)mark);
    json_t *stopped = api_rig_good(&rig, API_CHAT, body);
    check_text(stopped, "choices.0.message.content", "Hello");
    assert_int_equal(api_int_at(stopped, "choices.0.stop_reason"), mark);
    assert_int_equal(api_int_at(stopped, "usage.completion_tokens"), 4);
    json_decref(stopped);
    json_decref(reply);
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

static void an_echo_comes_before_the_answer(void **state)
{
    (void)state;
    static const char *const prompts[] = {"\"The \\u00e9t\\u00e9\"", "[786,1188]"};
    static const char *const texts[] = {"The \xc3\xa9t\xc3\xa9", "The server"};
    for (size_t i = 0; i < 2; i++) {
        char body[256];
        char both[256];
        (void)snprintf(body, sizeof body,
                       "{\"temperature\":0,\"max_tokens\":5,\"prompt\":%s}", prompts[i]);
        json_t *plain = api_rig_good(&rig, API_COMPLETION, body);
        (void)snprintf(body, sizeof body,
                       "{\"temperature\":0,\"max_tokens\":5,\"echo\":true,\"prompt\":%s}",
                       prompts[i]);
        json_t *echoed = api_rig_good(&rig, API_COMPLETION, body);
        (void)snprintf(both, sizeof both, "%s%s", texts[i],
                       api_string_at(plain, "choices.0.text"));
        check_text(echoed, "choices.0.text", both);
        json_decref(plain);
        json_decref(echoed);
    }
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

static void a_known_beginning_is_cached_but_not_across_salts(void **state)
{
    (void)state;
    char body[2048];
    char text[1100] = "";
    for (int i = 0; i < 100; i++) {
        (void)strncat(text, "server ", 8);
    }
    (void)snprintf(body, sizeof body, "{\"prompt\":\"%s\",\"max_tokens\":2}", text);
    json_decref(api_rig_good(&rig, API_COMPLETION, body));
    json_t *reply = api_rig_good(&rig, API_COMPLETION, body);
    assert_true(api_int_at(reply, "usage.prompt_tokens_details.cached_tokens") >= 64);
    json_decref(reply);
    static const char *const salts[] = {"mine", "yours", "mine"};
    for (int i = 0; i < 3; i++) {
        (void)snprintf(body, sizeof body,
                       "{\"prompt\":\"%s\",\"max_tokens\":2,\"cache_salt\":\"%s\"}", text,
                       salts[i]);
        reply = api_rig_good(&rig, API_COMPLETION, body);
        assert_int_equal(api_int_at(reply, "usage.prompt_tokens_details.cached_tokens") > 0,
                         i == 2);
        json_decref(reply);
    }
}

static void a_request_id_becomes_the_id(void **state)
{
    (void)state;
    json_t *reply = api_rig_good(&rig, API_COMPLETION,
                                 "{\"prompt\":\"a\",\"request_id\":\"my \\\"id\\\"\\n\"}");
    check_text(reply, "id", "cmpl-my \"id\"\n");
    json_decref(reply);
}

static void a_developer_speaks_as_the_system_does(void **state)
{
    (void)state;
    static const char *const roles[] = {"system", "developer"};
    json_t *replies[2];
    for (int i = 0; i < 2; i++) {
        char body[512];
        (void)snprintf(
            body, sizeof body,
            "{\"temperature\":0,\"return_token_ids\":true,\"messages\":[{\"role\":"
            "\"%s\",\"content\":\"Answer briefly.\"},{\"role\":\"user\","
            "\"content\":[{\"type\":\"text\",\"text\":\"He\"},{\"type\":\"text\","
            "\"text\":\"llo\"}]}]}",
            roles[i]);
        replies[i] = api_rig_good(&rig, API_CHAT, body);
    }
    assert_true(json_equal(api_at(replies[0], "prompt_token_ids"),
                           api_at(replies[1], "prompt_token_ids")));
    assert_true(json_array_size(api_at(replies[0], "prompt_token_ids")) > 6);
    json_decref(replies[0]);
    json_decref(replies[1]);
}

static void a_cancelled_answer_is_told_as_aborted(void **state)
{
    (void)state;
    static const char body[] = "{\"prompt\":\"a\",\"max_tokens\":200,\"ignore_eos\":true}";
    api_call *call = NULL;
    api_failure failure;
    mla_error err = {0};
    bool is_done = false;
    bool is_idle = false;
    byte_buffer out = {.context = rig.context};
    assert_true(
        api_call_open(&rig.settings, API_COMPLETION, body, strlen(body), &call, &failure));
    api_call_cancel(call); /* not submitted: nothing to cancel */
    assert_true(api_call_has_ended(call));
    api_call_submit(call);
    assert_false(api_call_has_ended(call));
    must(engine_step(rig.settings.engine, &is_idle, &err), &err);
    must(engine_step(rig.settings.engine, &is_idle, &err), &err);
    api_call_cancel(call);
    api_call_cancel(call);
    api_rig_run(&rig);
    api_call_cancel(call);
    must(api_call_write(call, &out, &is_done, &err), &err);
    assert_true(is_done);
    json_t *reply = json_loadb(out.data, out.num, 0, NULL);
    check_text(reply, "choices.0.finish_reason", "abort");
    assert_true(api_int_at(reply, "usage.completion_tokens") >= 1);
    json_decref(reply);
    api_call_counts counts = api_call_count(call);
    assert_int_equal(counts.num_ended, 1);
    assert_int_equal(counts.prompt_tokens, 2);
    api_call_close(&call);
    byte_buffer_free(&out);
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

static void a_call_that_was_never_submitted_is_closed_without_a_trace(void **state)
{
    (void)state;
    static const char body[] = "{\"prompt\":[\"a\",\"b\"],\"n\":3,\"stop\":[\"x\"]}";
    api_call *call = NULL;
    api_failure failure;
    assert_true(
        api_call_open(&rig.settings, API_COMPLETION, body, strlen(body), &call, &failure));
    assert_int_equal(api_call_num_requests(call), 6);
    assert_false(api_call_has_news(call));
    api_call_close(&call);
    api_call_close(&call);
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
        cmocka_unit_test(a_chat_reply_has_every_part),
        cmocka_unit_test(a_completion_reply_has_every_part),
        cmocka_unit_test(
            a_request_without_max_tokens_gets_the_default_and_its_usage_says_so),
        cmocka_unit_test(greedy_answers_are_the_references),
        cmocka_unit_test(a_stop_string_cuts_the_text_and_is_named),
        cmocka_unit_test(a_stop_id_ends_the_answer_and_is_named),
        cmocka_unit_test(choice_i_is_the_answer_with_seed_plus_i),
        cmocka_unit_test(without_a_seed_no_two_answers_are_the_same),
        cmocka_unit_test(logprobs_of_a_chat_have_tokens_bytes_and_the_likeliest),
        cmocka_unit_test(logprobs_of_a_completion_are_four_lists),
        cmocka_unit_test(a_sampled_token_outside_the_likeliest_is_told_as_well),
        cmocka_unit_test(an_echo_comes_before_the_answer),
        cmocka_unit_test(a_bias_bans_or_forces_a_token),
        cmocka_unit_test(a_known_beginning_is_cached_but_not_across_salts),
        cmocka_unit_test(a_request_id_becomes_the_id),
        cmocka_unit_test(a_developer_speaks_as_the_system_does),
        cmocka_unit_test(a_cancelled_answer_is_told_as_aborted),
        cmocka_unit_test(a_large_reply_is_written_in_slices_each_with_a_wake),
        cmocka_unit_test(a_call_that_was_never_submitted_is_closed_without_a_trace),
    };
    return cmocka_run_group_tests_name("api replies", tests, open_rig, close_rig);
}
