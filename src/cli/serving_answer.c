/* serving_answer.c - answers read from plain bodies and event streams: see serving_answer.h. */
#include "cli/serving_answer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"

enum { HTTP_OK = 200 };

serving_answer serving_answer_none(mla_context *context)
{
    return (serving_answer){.call = client_call_none(context),
                            .text = {.context = context},
                            .times = {.context = context},
                            .prompt_tokens = -1,
                            .new_tokens = -1};
}

void serving_answer_end(serving_answer *answer)
{
    client_call_end(&answer->call);
    byte_buffer_free(&answer->text);
    byte_buffer_free(&answer->times);
    *answer = serving_answer_none(answer->text.context);
}

mla_status serving_answer_begin(serving_answer *answer, const serving_ask *ask,
                                const client_address *to, mla_error *err)
{
    serving_answer_end(answer);
    answer->ask = *ask;
    char *body = serving_ask_write(ask);
    MLAI_CHECK(body, MLA_ERR_NO_MEMORY, "the memory for a request is out");
    mla_status status = client_call_begin(
        &answer->call, to, ask->is_chat ? "/v1/chat/completions" : "/v1/completions", body,
        err);
    serving_text_release(body);
    return status;
}

static void fail(serving_answer *answer, const char *why, const char *words)
{
    if (!answer->failure[0]) {
        (void)snprintf(answer->failure, sizeof answer->failure, "%s%.240s", why, words);
    }
}

/* Of a whole answer, or of a chunk. NULL: none. A model may write NUL, too. */
static const json_t *text_of(const json_t *choice)
{
    const json_t *part = json_object_get(choice, "delta");
    part = part ? part : json_object_get(choice, "message");
    return json_object_get(part ? part : choice, part ? "content" : "text");
}

static void take_usage(serving_answer *answer, const json_t *root)
{
    const json_t *usage = json_object_get(root, "usage");
    if (json_is_object(usage)) {
        answer->prompt_tokens = json_integer_value(json_object_get(usage, "prompt_tokens"));
        answer->new_tokens =
            json_integer_value(json_object_get(usage, "completion_tokens"));
    }
}

static mla_status take_value(serving_answer *answer, const json_t *root, int64_t now_ns,
                             mla_error *err)
{
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const json_t *error = json_object_get(root, "error");
    const char *finish = json_string_value(json_object_get(choice, "finish_reason"));
    const json_t *text = text_of(choice);
    if (error) {
        const char *message = json_string_value(json_object_get(error, "message"));
        fail(answer, "an error: ", message ? message : "without a message");
    }
    if (finish) {
        (void)snprintf(answer->finish, sizeof answer->finish, "%s", finish);
    }
    take_usage(answer, root);
    if (json_string_length(text) > 0) {
        MLAI_TRY(client_append(&answer->text, json_string_value(text),
                               json_string_length(text), err));
        return client_append(&answer->times, &now_ns, sizeof now_ns, err);
    }
    return MLA_OK;
}

static mla_status take_json(serving_answer *answer, const char *text, size_t bytes,
                            int64_t now_ns, mla_error *err)
{
    json_t *root = json_loadb(text, bytes, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(root)) {
        char words[SERVING_TEXT];
        int shown = bytes < sizeof words ? (int)bytes : (int)sizeof words - 1;
        (void)snprintf(words, sizeof words, "%.*s", shown, text);
        json_decref(root);
        fail(answer, "not a JSON object: ", words);
        return MLA_OK;
    }
    mla_status status = take_value(answer, root, now_ns, err);
    json_decref(root);
    return status;
}

/* A line without its end: "data: ...", a comment, or nothing. */
static mla_status take_line(serving_answer *answer, const char *line, size_t bytes,
                            int64_t now_ns, mla_error *err)
{
    static const char data[] = "data: ";
    static const char mark[] = "[DONE]";
    size_t skipped = sizeof data - 1;
    if (bytes < skipped || memcmp(line, data, skipped) != 0) {
        return MLA_OK;
    }
    if (answer->has_mark) {
        fail(answer, "an event after [DONE]", "");
    }
    if (bytes == skipped + sizeof mark - 1 &&
        memcmp(line + skipped, mark, sizeof mark - 1) == 0) {
        answer->has_mark = true;
        return MLA_OK;
    }
    return take_json(answer, line + skipped, bytes - skipped, now_ns, err);
}

static mla_status take_events(serving_answer *answer, mla_error *err)
{
    const byte_buffer *body = &answer->call.body;
    int64_t now_ns = mlai_now_ns();
    while (answer->num_scanned < body->num) {
        const char *line = body->data + answer->num_scanned;
        const char *end = memchr(line, '\n', body->num - answer->num_scanned);
        if (!end) {
            break;
        }
        answer->num_scanned += (size_t)(end - line) + 1;
        MLAI_TRY(take_line(answer, line, (size_t)(end - line), now_ns, err));
    }
    return MLA_OK;
}

static void check_usage(serving_answer *answer)
{
    const serving_ask *ask = &answer->ask;
    char words[SERVING_TEXT];
    bool is_prompt = ask->is_chat ? answer->prompt_tokens > 0 &&
                                        answer->prompt_tokens <= SERVING_CHAT_PROMPT_TOKENS
                                  : answer->prompt_tokens == ask->prompt_tokens;
    (void)snprintf(words, sizeof words,
                   "%lld prompt tokens and %lld new ones, asked for %d and %lld",
                   (long long)answer->prompt_tokens, (long long)answer->new_tokens,
                   ask->is_chat ? SERVING_CHAT_PROMPT_TOKENS : ask->prompt_tokens,
                   (long long)ask->new_tokens);
    if (!is_prompt || answer->new_tokens != ask->new_tokens) {
        fail(answer, "usage says ", words);
    }
    if (strcmp(answer->finish, "length") != 0) {
        fail(answer, "it ended for the reason ", answer->finish);
    }
    if (ask->is_stream && !answer->has_mark) {
        fail(answer, "the stream ended without [DONE]", "");
    }
}

static mla_status take_end(serving_answer *answer, mla_error *err)
{
    const client_call *call = &answer->call;
    char words[SERVING_WORD];
    answer->last_ns = call->end_ns;
    if (call->failure[0]) {
        fail(answer, "no whole reply: ", call->failure);
        return MLA_OK;
    }
    if (!answer->ask.is_stream || call->status != HTTP_OK) {
        MLAI_TRY(take_json(answer, call->body.data ? call->body.data : "", call->body.num,
                           call->end_ns, err));
    }
    if (call->status != HTTP_OK) {
        (void)snprintf(words, sizeof words, "%d", call->status);
        fail(answer, "the status is ", words);
    }
    if (!answer->failure[0]) {
        check_usage(answer);
    }
    return MLA_OK;
}

mla_status serving_answer_take(serving_answer *answer, mla_error *err)
{
    if (answer->last_ns != 0) {
        return MLA_OK;
    }
    if (answer->ask.is_stream && answer->call.status == HTTP_OK) {
        MLAI_TRY(take_events(answer, err));
    }
    return answer->call.is_done ? take_end(answer, err) : MLA_OK;
}

bool serving_answer_has_begun(const serving_answer *answer)
{
    return answer->times.num > 0 || answer->last_ns != 0;
}

int32_t serving_answer_num_times(const serving_answer *answer)
{
    return (int32_t)(answer->times.num / sizeof(int64_t));
}

int64_t serving_answer_time(const serving_answer *answer, int32_t i)
{
    int64_t at = 0;
    memcpy(&at, answer->times.data + (size_t)i * sizeof at, sizeof at);
    return at;
}

bool serving_answer_is_same(const serving_answer *a, const serving_answer *b)
{
    return !a->failure[0] && !b->failure[0] && a->text.num == b->text.num &&
           (a->text.num == 0 || memcmp(a->text.data, b->text.data, a->text.num) == 0);
}
