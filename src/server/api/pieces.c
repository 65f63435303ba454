/* pieces.c - what chunks and whole replies have in common: the text, why it ended, usage. */
#include "server/api/call_parts.h"

/* Text is made at the far end of the room for it and escaped to the near end: escaped bytes
 * never overtake those that are still to be read. */
static void write_certain(answer_text *text, const engine_event *event, size_t most,
                          api_text *out)
{
    char *room = api_text_room(out, (API_ESCAPED_BYTES + 1) * most);
    if (!room) {
        return;
    }
    char *raw = room + API_ESCAPED_BYTES * most;
    size_t bytes = event ? answer_text_add(text, event, raw) : answer_text_end(text, raw);
    api_text_wrote(out, (size_t)(api_escape(raw, bytes, room) - room));
}

void api_write_text(api_choice *choice, int64_t until, bool is_end, api_text *out)
{
    for (; choice->num_read < until; choice->num_read++) {
        engine_event event = api_mailbox_event(&choice->mail, choice->num_read);
        write_certain(&choice->text, &event, answer_text_room(&choice->text, event.token),
                      out);
    }
    if (is_end) { /* the room of a token has room for the end, too */
        write_certain(&choice->text, NULL, answer_text_room(&choice->text, 0), out);
    }
}

static const char *finish_name(engine_finish finish)
{
    switch (finish) {
    case ENGINE_STOP:
        return "stop";
    case ENGINE_LENGTH:
        return "length";
    case ENGINE_CANCELLED:
    case ENGINE_FAILED:
    case ENGINE_NUM_FINISHES:
        break;
    }
    return "abort";
}

/* As vLLM has it: the stop string or the id of stop_token_ids; null where an end token of the
 * model ended it. */
static void write_stop_reason(const api_choice *choice, api_text *out)
{
    const engine_request *request = &choice->request;
    const engine_result *result = &choice->mail.result;
    if (result->stop_string >= 0) {
        const engine_text *stop = &request->stops[result->stop_string];
        api_text_add(out, "\"");
        api_text_escaped(out, stop->data, stop->bytes);
        api_text_add(out, "\"");
        return;
    }
    for (int32_t i = 0; result->stop_id >= 0 && i < request->num_stop_ids; i++) {
        if (request->stop_ids[i] == result->stop_id) {
            api_text_int(out, result->stop_id);
            return;
        }
    }
    api_text_add(out, "null");
}

void api_write_end(const api_choice *choice, api_text *out)
{
    api_text_add(out, "\"finish_reason\":\"");
    api_text_add(out, finish_name(choice->mail.result.finish));
    api_text_add(out, "\",\"stop_reason\":");
    write_stop_reason(choice, out);
}

void api_write_ids(const int32_t *ids, int64_t num, api_text *out)
{
    for (int64_t i = 0; i < num; i++) {
        api_text_add(out, i == 0 ? "[" : ",");
        api_text_int(out, ids[i]);
    }
    api_text_add(out, num == 0 ? "[]" : "]");
}

void api_write_usage(const api_usage *usage, api_text *out)
{
    api_text_add(out, "{\"prompt_tokens\":");
    api_text_int(out, usage->prompt_tokens);
    api_text_add(out, ",\"completion_tokens\":");
    api_text_int(out, usage->new_tokens);
    api_text_add(out, ",\"total_tokens\":");
    api_text_int(out, usage->prompt_tokens + usage->new_tokens);
    if (usage->cached_tokens >= 0) {
        api_text_add(out, ",\"prompt_tokens_details\":{\"cached_tokens\":");
        api_text_int(out, usage->cached_tokens);
        api_text_add(out, "}");
    }
    api_text_add(out, "}");
}

/* A prompt counts once, however many choices answer it, and so does what of it the first of
 * them found in the cache. */
api_usage api_usage_of(const api_call *call)
{
    api_usage usage = {0};
    for (int32_t i = 0; i < call->num_choices; i++) {
        const api_mailbox *mail = &call->choices[i].mail;
        usage.new_tokens += mail->result.num_tokens;
        if (i % call->options.num_choices == 0) {
            usage.prompt_tokens += call->choices[i].request.num_prompt;
            usage.cached_tokens += mail->result.num_cached;
        }
    }
    return usage;
}
