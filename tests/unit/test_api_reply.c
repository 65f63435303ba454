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
        cmocka_unit_test(an_echo_comes_before_the_answer),
        cmocka_unit_test(a_known_beginning_is_cached_but_not_across_salts),
        cmocka_unit_test(a_request_id_becomes_the_id),
        cmocka_unit_test(a_developer_speaks_as_the_system_does),
        cmocka_unit_test(a_cancelled_answer_is_told_as_aborted),
        cmocka_unit_test(a_call_that_was_never_submitted_is_closed_without_a_trace),
    };
    return cmocka_run_group_tests_name("api replies", tests, open_rig, close_rig);
}
