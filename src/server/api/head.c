/* head.c - how every chunk and every reply of a call begins, made once. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/api/call_parts.h"
#include "server/api/entropy.h"

enum { RANDOM_DIGITS = 32 };

static void write_id(const api_call *call, api_text *out)
{
    char digits[RANDOM_DIGITS + 1];
    const char *id = call->options.request_id;
    api_text_add(out, call->kind == API_CHAT ? "chatcmpl-" : "cmpl-");
    if (id) {
        api_text_escaped(out, id, strlen(id));
        return;
    }
    uint64_t high = api_entropy_of(call->settings);
    uint64_t low = api_entropy_of(call->settings);
    (void)snprintf(digits, sizeof digits, "%016llx%016llx", (unsigned long long)high,
                   (unsigned long long)low);
    api_text_add(out, digits);
}

static const char *object_of(const api_call *call)
{
    if (call->kind == API_COMPLETION) {
        return "text_completion"; /* of chunks, too */
    }
    return call->options.is_stream ? "chat.completion.chunk" : "chat.completion";
}

static void write_head(const api_call *call, api_text *out)
{
    const api_settings *settings = call->settings;
    int64_t now =
        settings->now_seconds ? settings->now_seconds(settings->user) : (int64_t)time(NULL);
    api_text_add(out, "{\"id\":\"");
    write_id(call, out);
    api_text_add(out, "\",\"object\":\"");
    api_text_add(out, object_of(call));
    api_text_add(out, "\",\"created\":");
    api_text_int(out, now);
    api_text_add(out, ",\"model\":");
    api_text_string(out, settings->model_name);
    api_text_add(out, ",\"system_fingerprint\":\"mla-");
    api_text_escaped(out, settings->version, strlen(settings->version));
    api_text_add(out, "\"");
}

mla_status api_head_make(api_call *call, mla_error *err)
{
    byte_buffer made = {.context = engine_context_of(call->settings->engine)};
    api_text out = api_text_begin(&made, err);
    write_head(call, &out);
    mla_status status = api_text_end(&out);
    if (status == MLA_OK) {
        status = api_memory_copy(&call->memory, made.data, made.num, &call->head, err);
        call->head_bytes = made.num;
    }
    byte_buffer_free(&made);
    return status;
}
