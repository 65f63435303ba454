/* Streams: their events, one after another, say what the whole reply says; usage comes only
 * where it was asked for; and what an engine that fails leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/api/call_parts.h"
#include "support/api_rig.h"
#include "support/must.h"

static api_rig rig;

#define USER(text) "\"messages\":[{\"role\":\"user\",\"content\":\"" text "\"}]"

static const json_t *last_of(const json_t *events, size_t from_end)
{
    return json_array_get(events, json_array_size(events) - 1 - from_end);
}

/* The reason of a choice, which exactly one of its chunks has: the last. */
static const char *reason_of(const json_t *events, int64_t index)
{
    const char *reason = NULL;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *choice =
            json_array_get(api_at(json_array_get(events, i), "choices"), 0);
        if (choice && api_int_at(choice, "index") == index) {
            assert_null(reason);
            reason = json_string_value(api_at(choice, "finish_reason"));
        }
    }
    return reason;
}

/* All tokens of the chunks of a choice. owned. */
static json_t *ids_of(const json_t *events, int64_t index)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *choice =
            json_array_get(api_at(json_array_get(events, i), "choices"), 0);
        json_t *more = json_object_get(choice, "token_ids");
        if (more && api_int_at(choice, "index") == index) {
            assert_int_equal(json_array_extend(ids, more), 0);
        }
    }
    return ids;
}

/* The same request, streamed and whole. */
static void check_same(api_kind kind, const char *fields)
{
    char body[1024];
    (void)snprintf(body, sizeof body, "{%s,\"return_token_ids\":true}", fields);
    json_t *whole = api_rig_good(&rig, kind, body);
    (void)snprintf(body, sizeof body, "{%s,\"return_token_ids\":true,\"stream\":true}",
                   fields);
    json_t *events = api_rig_stream(&rig, kind, body);
    const json_t *choices = api_at(whole, "choices");
    for (size_t i = 0; i < json_array_size(choices); i++) {
        const json_t *choice = json_array_get(choices, i);
        char *joined = api_joined(events, (int64_t)i);
        json_t *ids = ids_of(events, (int64_t)i);
        assert_string_equal(
            joined, api_string_at(choice, kind == API_CHAT ? "message.content" : "text"));
        assert_string_equal(reason_of(events, (int64_t)i),
                            api_string_at(choice, "finish_reason"));
        assert_true(json_equal(ids, api_at(choice, "token_ids")));
        free(joined);
        json_decref(ids);
    }
    json_decref(whole);
    json_decref(events);
}

static void a_stream_says_what_the_whole_reply_says(void **state)
{
    (void)state;
    static const struct row {
        api_kind kind;
        const char *fields;
    } rows[] = {
        {API_CHAT, "\"temperature\":0,\"max_tokens\":40," USER("Hello")},
        {API_CHAT, "\"seed\":3,\"n\":3,\"max_tokens\":30," USER("Explain printf.")},
        {API_CHAT, "\"temperature\":0,\"stop\":[\"can I\",\"zz\"]," USER("Hello")},
        {API_CHAT,
         "\"temperature\":0,\"stop\":\"can\",\"include_stop_str_in_output\":true," USER(
             "Hello")},
        {API_CHAT, "\"temperature\":0,\"skip_special_tokens\":false," USER("Hello")},
        {API_COMPLETION, "\"seed\":9,\"n\":2,\"max_tokens\":60,\"temperature\":2,"
                         "\"prompt\":[\"n'a pas pu \",\"The\"]"},
        {API_COMPLETION,
         "\"temperature\":0,\"max_tokens\":9,\"echo\":true,\"prompt\":\"The\""},
        {API_COMPLETION, "\"temperature\":0,\"max_tokens\":9,\"stop\":[\"\\n\"],"
                         "\"prompt\":\"int main\""},
        {API_COMPLETION, "\"seed\":1,\"max_tokens\":1,\"prompt\":[1,2,3]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_same(rows[i].kind, rows[i].fields);
    }
}

static void a_chat_begins_with_the_role_of_each_choice(void **state)
{
    (void)state;
    json_t *events = api_rig_stream(
        &rig, API_CHAT, "{\"n\":2,\"max_tokens\":3,\"stream\":true," USER("Hello") "}");
    for (size_t i = 0; i < 2; i++) {
        const json_t *event = json_array_get(events, i);
        assert_string_equal(api_string_at(event, "object"), "chat.completion.chunk");
        assert_int_equal(api_int_at(event, "choices.0.index"), i);
        assert_string_equal(api_string_at(event, "choices.0.delta.role"), "assistant");
        assert_string_equal(api_string_at(event, "choices.0.delta.content"), "");
        assert_true(json_is_null(api_at(event, "choices.0.finish_reason")));
        assert_null(json_object_get(event, "usage"));
    }
    for (size_t i = 2; i < json_array_size(events); i++) {
        assert_null(
            json_object_get(api_at(json_array_get(events, i), "choices.0.delta"), "role"));
    }
    json_decref(events);
}

static void usage_comes_only_where_it_was_asked_for(void **state)
{
    (void)state;
#define BODY "\"max_tokens\":4,\"stream\":true,\"prompt\":\"The\",\"ignore_eos\":true"
    json_t *events = api_rig_stream(&rig, API_COMPLETION, "{" BODY "}");
    assert_null(json_object_get(last_of(events, 0), "usage"));
    json_decref(events);
    events = api_rig_stream(&rig, API_COMPLETION,
                            "{" BODY ",\"stream_options\":{\"include_usage\":true}}");
    const json_t *last = last_of(events, 0);
    assert_int_equal(json_array_size(api_at(last, "choices")), 0);
    assert_int_equal(api_int_at(last, "usage.prompt_tokens"), 2);
    assert_int_equal(api_int_at(last, "usage.completion_tokens"), 4);
    assert_int_equal(api_int_at(last, "usage.total_tokens"), 6);
    assert_int_equal(api_int_at(last, "usage.prompt_tokens_details.cached_tokens"), 0);
    assert_true(json_is_null(api_at(last_of(events, 1), "usage")));
    json_decref(events);
    events = api_rig_stream(&rig, API_COMPLETION,
                            "{" BODY ",\"stream_options\":{\"include_usage\":true,"
                            "\"continuous_usage_stats\":true}}");
    int64_t before = 0;
    for (size_t i = 0; i + 1 < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        assert_int_equal(api_int_at(event, "usage.prompt_tokens"), 2);
        assert_true(api_int_at(event, "usage.completion_tokens") > before);
        before = api_int_at(event, "usage.completion_tokens");
    }
    assert_int_equal(before, 4);
    json_decref(events);
#undef BODY
}

/* The lists of the chunks, one after another, are those of the whole reply. */
static void check_lists(const json_t *events, const json_t *whole, const char *name)
{
    json_t *joined = json_array();
    char path[64];
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *choice = api_at(json_array_get(events, i), "choices.0");
        const json_t *logprobs = json_object_get(choice, "logprobs");
        if (json_is_object(logprobs)) {
            assert_int_equal(json_array_extend(joined, json_object_get(logprobs, name)), 0);
        }
    }
    (void)snprintf(path, sizeof path, "choices.0.logprobs.%s", name);
    assert_true(json_array_size(joined) > 0);
    assert_true(json_equal(joined, api_at(whole, path)));
    json_decref(joined);
}

static void streamed_logprobs_are_those_of_the_whole_reply(void **state)
{
    (void)state;
#define CHAT                                                                               \
    "\"seed\":5,\"logprobs\":true,\"top_logprobs\":3,\"max_tokens\":20," USER("Hello")
#define TEXT "\"seed\":5,\"logprobs\":3,\"max_tokens\":20,\"prompt\":\"n'a pas pu \""
    json_t *whole = api_rig_good(&rig, API_CHAT, "{" CHAT "}");
    json_t *events = api_rig_stream(&rig, API_CHAT, "{" CHAT ",\"stream\":true}");
    check_lists(events, whole, "content");
    json_decref(whole);
    json_decref(events);
    static const char *const lists[] = {"tokens", "token_logprobs", "top_logprobs",
                                        "text_offset"};
    whole = api_rig_good(&rig, API_COMPLETION, "{" TEXT "}");
    events = api_rig_stream(&rig, API_COMPLETION, "{" TEXT ",\"stream\":true}");
    for (size_t i = 0; i < 4; i++) {
        check_lists(events, whole, lists[i]);
    }
    json_decref(whole);
    json_decref(events);
#undef CHAT
#undef TEXT
}

/* A call whose engine is the test. */
typedef struct play {
    api_call *call;
    byte_buffer out;
    bool is_done;
} play;

static play play_begin(api_kind kind, const char *body)
{
    play self = {.out = {.context = rig.context}};
    api_failure failure;
    if (!api_call_open(&rig.settings, kind, body, strlen(body), &self.call, &failure)) {
        fail_msg("%s: %s", body, failure.message);
    }
    self.call->is_submitted = true;
    return self;
}

static void play_token(play *self, int32_t choice, int32_t token, int64_t index)
{
    engine_request *request = api_call_request(self->call, choice);
    const engine_event event = {.token = token, .index = index};
    assert_true(request->on_token(request, &event));
}

static void play_end(play *self, int32_t choice, engine_finish finish, int64_t num_tokens)
{
    engine_request *request = api_call_request(self->call, choice);
    const engine_result result = {
        .finish = finish, .stop_id = -1, .stop_string = -1, .num_tokens = num_tokens};
    request->on_end(request, &result);
}

/* What is new. owned: free. */
static char *play_write(play *self)
{
    mla_error err = {0};
    self->out.num = 0;
    must(api_call_write(self->call, &self->out, &self->is_done, &err), &err);
    return api_text_of(&self->out);
}

static void play_finish(play *self)
{
    assert_true(api_call_has_ended(self->call));
    api_call_close(&self->call);
    byte_buffer_free(&self->out);
    api_rig_check(&rig);
}

static size_t count(const char *text, const char *what)
{
    size_t num = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) {
        num++;
    }
    return num;
}

/* The one token whose text this is. */
static int32_t token_of(const char *text, size_t bytes)
{
    for (int32_t id = 0; id < tokenizer_vocab_size(rig.words); id++) {
        size_t num = 0;
        const char *piece = tokenizer_bytes_of(rig.words, id, &num);
        if (num == bytes && memcmp(piece, text, bytes) == 0) {
            return id;
        }
    }
    fail_msg("no token of %zu bytes", bytes);
    return -1;
}

static void half_a_character_waits_for_its_other_half(void **state)
{
    (void)state;
    static const char euro[] = "\xe2\x82\xac";
    play self =
        play_begin(API_COMPLETION, "{\"prompt\":[1],\"max_tokens\":9,\"stream\":true}");
    char *text = play_write(&self); /* a completion has nothing to say yet */
    assert_string_equal(text, "");
    free(text);
    for (int i = 0; i < 3; i++) {
        play_token(&self, 0, token_of(euro + i, 1), i);
        text = play_write(&self);
        assert_int_equal(count(text, "data: "), i == 2 ? 1 : 0);
        assert_int_equal(count(text, "\"text\":\"\xe2\x82\xac\""), i == 2 ? 1 : 0);
        free(text);
    }
    play_token(&self, 0, token_of(euro, 1), 3);
    play_end(&self, 0, ENGINE_LENGTH, 4);
    text = play_write(&self); /* the other half never came */
    assert_int_equal(count(text, "\"text\":\"\xef\xbf\xbd\""), 1);
    assert_int_equal(count(text, "\"finish_reason\":\"length\""), 1);
    assert_int_equal(count(text, "data: [DONE]\n\n"), 1);
    assert_true(self.is_done);
    free(text);
    play_finish(&self);
}

static void what_may_become_a_stop_string_waits(void **state)
{
    (void)state;
    play self =
        play_begin(API_COMPLETION, "{\"prompt\":[1],\"max_tokens\":9,\"stream\":true,"
                                   "\"stop\":\"ab\"}");
    char *text = NULL;
    play_token(&self, 0, token_of("a", 1), 0);
    text = play_write(&self);
    assert_string_equal(text, "");
    free(text);
    play_token(&self, 0, token_of("c", 1), 1);
    text = play_write(&self);
    assert_int_equal(count(text, "\"text\":\"ac\""), 1);
    free(text);
    play_token(&self, 0, token_of("a", 1), 2);
    play_end(&self, 0, ENGINE_LENGTH, 3);
    text = play_write(&self);
    assert_int_equal(count(text, "\"text\":\"a\",\"logprobs\":null,\"finish_reason\""), 1);
    free(text);
    play_finish(&self);
}

static void new_tokens_of_one_wake_make_one_chunk(void **state)
{
    (void)state;
    play self = play_begin(API_CHAT, "{\"stream\":true,\"max_tokens\":9," USER("Hi") "}");
    char *text = play_write(&self);
    assert_int_equal(count(text, "data: "), 1);
    assert_int_equal(count(text, "\"role\":\"assistant\""), 1);
    free(text);
    assert_false(api_call_has_news(self.call));
    for (int i = 0; i < 3; i++) {
        play_token(&self, 0, token_of("a", 1), i);
    }
    assert_true(api_call_has_news(self.call));
    text = play_write(&self);
    assert_int_equal(count(text, "data: "), 1);
    assert_int_equal(count(text, "\"content\":\"aaa\""), 1);
    free(text);
    text = play_write(&self);
    assert_string_equal(text, "");
    free(text);
    play_end(&self, 0, ENGINE_STOP, 3);
    text = play_write(&self);
    assert_int_equal(count(text, "data: "), 2); /* the end, and [DONE] */
    free(text);
    text = play_write(&self);
    assert_string_equal(text, "");
    assert_true(self.is_done);
    free(text);
    play_finish(&self);
}

static void a_stream_whose_engine_fails_ends_with_an_error_event(void **state)
{
    (void)state;
    play self =
        play_begin(API_CHAT, "{\"stream\":true,\"n\":2,\"max_tokens\":9," USER("Hi") "}");
    play_token(&self, 0, token_of("a", 1), 0);
    play_end(&self, 0, ENGINE_FAILED, 1);
    play_end(&self, 1, ENGINE_FAILED, 0);
    char *text = play_write(&self);
    assert_int_equal(count(text, "data: {\"error\":{\"message\":"), 1);
    assert_int_equal(count(text, "\"code\":\"engine_failed\""), 1);
    assert_int_equal(count(text, "data: [DONE]\n\n"), 1);
    assert_int_equal(count(text, "\"finish_reason\":\""), 0);
    assert_true(self.is_done);
    free(text);
    play_finish(&self);
}

static void a_reply_whose_engine_fails_is_a_500(void **state)
{
    (void)state;
    play self = play_begin(API_CHAT, "{\"n\":2,\"max_tokens\":9," USER("Hi") "}");
    play_end(&self, 1, ENGINE_STOP, 0);
    char *text = play_write(&self);
    assert_string_equal(text, "");
    assert_false(self.is_done);
    free(text);
    play_end(&self, 0, ENGINE_FAILED, 0);
    text = play_write(&self);
    assert_int_equal(count(text, "\"type\":\"server_error\""), 1);
    assert_int_equal(api_call_status(self.call), API_INTERNAL);
    assert_true(self.is_done);
    free(text);
    play_finish(&self);
}

/* The last number that is told is the one before the end token's. */
static void the_text_of_the_end_token_is_left_out(void **state)
{
    (void)state;
    play self = play_begin(API_COMPLETION, "{\"prompt\":[1],\"max_tokens\":9,"
                                           "\"stop_token_ids\":[70]}");
    engine_request *request = api_call_request(self.call, 0);
    const engine_event event = {.token = 70, .index = 1, .is_end = true};
    const engine_result result = {
        .finish = ENGINE_STOP, .stop_id = 70, .stop_string = -1, .num_tokens = 2};
    play_token(&self, 0, token_of("a", 1), 0);
    assert_true(request->on_token(request, &event));
    request->on_end(request, &result);
    char *text = play_write(&self);
    assert_int_equal(count(text, "\"text\":\"a\""), 1);
    assert_int_equal(count(text, "\"stop_reason\":70"), 1);
    free(text);
    play_finish(&self);
}

static int open_rig(void **state)
{
    const api_rig_options options = {.max_requests = 6};
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
        cmocka_unit_test(a_stream_says_what_the_whole_reply_says),
        cmocka_unit_test(a_chat_begins_with_the_role_of_each_choice),
        cmocka_unit_test(usage_comes_only_where_it_was_asked_for),
        cmocka_unit_test(streamed_logprobs_are_those_of_the_whole_reply),
        cmocka_unit_test(half_a_character_waits_for_its_other_half),
        cmocka_unit_test(what_may_become_a_stop_string_waits),
        cmocka_unit_test(new_tokens_of_one_wake_make_one_chunk),
        cmocka_unit_test(a_stream_whose_engine_fails_ends_with_an_error_event),
        cmocka_unit_test(a_reply_whose_engine_fails_is_a_500),
        cmocka_unit_test(the_text_of_the_end_token_is_left_out),
    };
    return cmocka_run_group_tests_name("api streams", tests, open_rig, close_rig);
}
