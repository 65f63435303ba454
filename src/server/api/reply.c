/* reply.c - the whole reply, once all choices have ended. */
#include <string.h>

#include "server/api/call_parts.h"

static void write_echo(const api_choice *choice, api_text *out)
{
    if (choice->prompt->text) { /* kept for an echo only */
        api_text_escaped(out, choice->prompt->text, choice->prompt->bytes);
    }
}

static void write_content(api_call *call, api_choice *choice, api_text *out)
{
    bool is_chat = call->kind == API_CHAT;
    api_text_add(out, is_chat ? ",\"message\":{\"role\":\"assistant\",\"content\":\""
                              : ",\"text\":\"");
    if (call->options.is_echo) {
        write_echo(choice, out);
    }
    api_write_text(choice, api_mailbox_num(&choice->mail), true, out);
    api_text_add(out, is_chat ? "\",\"refusal\":null}" : "\"");
}

static void write_choice(api_call *call, api_choice *choice, api_text *out)
{
    const api_mailbox *mail = &choice->mail;
    api_text_add(out, "{\"index\":");
    api_text_int(out, choice->index);
    write_content(call, choice, out);
    api_text_add(out, ",\"logprobs\":");
    api_write_logprobs(call, choice, 0, choice->num_read, out);
    api_text_add(out, ",");
    api_write_end(choice, out);
    if (call->options.returns_ids) {
        api_text_add(out, ",\"token_ids\":");
        api_write_ids(mail->ids, choice->num_read, out);
        if (call->kind == API_COMPLETION) {
            api_text_add(out, ",\"prompt_token_ids\":");
            api_write_ids(choice->prompt->ids, choice->prompt->num, out);
        }
    }
    api_text_add(out, "}");
}

static void write_beginning(const api_call *call, api_text *out)
{
    api_text_bytes(out, call->head, call->head_bytes);
    api_text_add(out, ",\"choices\":[");
}

static void write_ending(const api_call *call, api_text *out)
{
    const api_usage usage = api_usage_of(call);
    api_text_add(out, "],\"usage\":");
    api_write_usage(&usage, out);
    if (call->options.returns_ids && call->kind == API_CHAT) {
        api_text_add(out, ",\"prompt_token_ids\":");
        api_write_ids(call->prompts.list[0].ids, call->prompts.list[0].num, out);
    }
    api_text_add(out, "}");
}

/* As many choices as make a slice, so that a large reply does not keep the loop from all
 * others. */
static void write_slice(api_call *call, api_text *out)
{
    enum { SLICE_BYTES = 1 << 16 };
    size_t start = out->to->num;
    while (call->num_written < call->num_choices && out->to->num - start < SLICE_BYTES &&
           out->status == MLA_OK) {
        api_text_add(out, call->num_written > 0 ? "," : "");
        write_choice(call, &call->choices[call->num_written], out);
        call->num_written++;
    }
}

static void write_good(api_call *call, api_text *out)
{
    const api_settings *settings = call->settings;
    if (call->num_written == 0) {
        write_beginning(call, out);
    }
    write_slice(call, out);
    call->is_done = call->num_written == call->num_choices;
    if (call->is_done) {
        write_ending(call, out);
    } else if (settings->wake) {
        settings->wake(settings->user);
    }
}

bool api_call_has_failed(const api_call *call)
{
    for (int32_t i = 0; i < call->num_choices; i++) {
        const api_mailbox *mail = &call->choices[i].mail;
        if (api_mailbox_has_ended(mail) && mail->result.finish == ENGINE_FAILED) {
            return true;
        }
    }
    return false;
}

void api_write_failure(api_call *call, api_text *out)
{
    api_failure failure;
    (void)api_fail(&failure, API_INTERNAL, NULL, "engine_failed",
                   "The engine failed before the answer was whole.");
    char *room = api_text_room(out, API_MAX_FAILURE_BYTES);
    if (room) {
        api_text_wrote(out, api_failure_print(&failure, room));
    }
    call->status = API_INTERNAL;
}

void api_reply_write(api_call *call, api_text *out)
{
    if (api_call_has_failed(call)) {
        api_write_failure(call, out);
        call->is_done = true;
    } else {
        write_good(call, out);
    }
}
