/* stream.c - server-sent events: a chunk for each choice that has something new. What a chunk
 * begins with was made once; only the text is made, and escaped, for each. */
#include <string.h>

#include "server/api/call_parts.h"

static void begin_chunk(const api_call *call, const api_choice *choice, api_text *out)
{
    api_text_add(out, "data: ");
    api_text_bytes(out, call->head, call->head_bytes);
    api_text_add(out, ",\"choices\":[{\"index\":");
    api_text_int(out, choice->index);
}

static void end_chunk(const api_call *call, const api_choice *choice, api_text *out)
{
    api_text_add(out, "}]");
    if (call->options.has_running_usage) {
        const api_usage usage = {.prompt_tokens = choice->request.num_prompt,
                                 .new_tokens = choice->num_read,
                                 .cached_tokens = -1};
        api_text_add(out, ",\"usage\":");
        api_write_usage(&usage, out);
    } else if (call->options.has_usage) {
        api_text_add(out, ",\"usage\":null");
    }
    api_text_add(out, "}\n\n");
}

/* The first chunk of a choice: its role, or its prompt where that is wanted. A completion has
 * none otherwise. */
static void write_beginning(const api_call *call, const api_choice *choice, api_text *out)
{
    const api_prompt *prompt = choice->prompt;
    bool is_chat = call->kind == API_CHAT;
    if (!is_chat && !call->options.is_echo && !call->options.returns_ids) {
        return;
    }
    begin_chunk(call, choice, out);
    api_text_add(out, is_chat ? ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}"
                              : ",\"text\":\"");
    if (!is_chat) {
        if (call->options.is_echo) {
            api_text_escaped(out, prompt->text, prompt->bytes);
        }
        api_text_add(out, "\"");
    }
    api_text_add(out, ",\"logprobs\":null,\"finish_reason\":null");
    if (call->options.returns_ids) {
        api_text_add(out, ",\"prompt_token_ids\":");
        api_write_ids(prompt->ids, prompt->num, out);
    }
    end_chunk(call, choice, out);
}

/* Everything after the text. */
static void write_rest(const api_call *call, api_choice *choice, int64_t from, bool is_end,
                       api_text *out)
{
    api_text_add(out, call->kind == API_CHAT ? "\"},\"logprobs\":" : "\",\"logprobs\":");
    if (choice->num_read > from) {
        api_write_logprobs(call, choice, from, choice->num_read, out);
    } else {
        api_text_add(out, "null");
    }
    api_text_add(out, ",");
    if (is_end) {
        api_write_end(choice, out);
    } else {
        api_text_add(out, "\"finish_reason\":null");
    }
    if (call->options.returns_ids) {
        api_text_add(out, ",\"token_ids\":");
        api_write_ids(choice->mail.ids + from, choice->num_read - from, out);
    }
    end_chunk(call, choice, out);
}

/* Tokens that bring no text yet (half a character, half a stop string) make no chunk, unless
 * the client asked for more than text. */
static void write_news(const api_call *call, api_choice *choice, int64_t until, bool is_end,
                       api_text *out)
{
    size_t start = out->to->num;
    int64_t from = choice->num_read;
    begin_chunk(call, choice, out);
    api_text_add(out,
                 call->kind == API_CHAT ? ",\"delta\":{\"content\":\"" : ",\"text\":\"");
    size_t before = out->to->num;
    api_write_text(choice, until, is_end, out);
    if (out->to->num > before || is_end || choice->mail.logprobs ||
        call->options.returns_ids) {
        write_rest(call, choice, from, is_end, out);
    } else {
        out->to->num = start;
    }
    choice->has_ended = is_end;
}

static void write_choice(const api_call *call, api_choice *choice, api_text *out)
{
    bool is_end =
        api_mailbox_has_ended(&choice->mail); /* before the number, so it is whole */
    int64_t until = api_mailbox_num(&choice->mail);
    if (!choice->has_begun) {
        write_beginning(call, choice, out);
        choice->has_begun = true;
    }
    if (until > choice->num_read || is_end) {
        write_news(call, choice, until, is_end, out);
    }
}

static void write_last(api_call *call, api_text *out)
{
    if (call->options.has_usage) {
        const api_usage usage = api_usage_of(call);
        api_text_add(out, "data: ");
        api_text_bytes(out, call->head, call->head_bytes);
        api_text_add(out, ",\"choices\":[],\"usage\":");
        api_write_usage(&usage, out);
        api_text_add(out, "}\n\n");
    }
    api_text_add(out, "data: [DONE]\n\n");
    call->is_done = true;
}

void api_stream_write(api_call *call, api_text *out)
{
    bool is_end = true;
    if (api_call_has_failed(call)) {
        api_text_add(out, "data: ");
        api_write_failure(call, out);
        api_text_add(out, "\n\ndata: [DONE]\n\n");
        call->is_done = true;
        return;
    }
    for (int32_t i = 0; i < call->num_choices; i++) {
        api_choice *choice = &call->choices[i];
        if (!choice->has_ended) {
            write_choice(call, choice, out);
        }
        is_end = is_end && choice->has_ended;
    }
    if (is_end) {
        write_last(call, out);
    }
}
