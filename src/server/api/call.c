/* call.c - the life of a call: see call.h. */
#include <string.h>

#include "server/api/call_parts.h"

void api_call_close(api_call **call)
{
    api_call *self = *call;
    if (!self) {
        return;
    }
    api_memory memory = self->memory;
    api_prompts_free(&self->prompts);
    *call = NULL;
    api_memory_free(&memory); /* of which it is a part itself */
}

bool api_call_is_stream(const api_call *call)
{
    return call->options.is_stream;
}

int32_t api_call_num_requests(const api_call *call)
{
    return call->num_choices;
}

engine_request *api_call_request(api_call *call, int32_t i)
{
    return &call->choices[i].request;
}

void api_call_submit(api_call *call)
{
    call->is_submitted = true;
    api_observe(call->settings->metrics, API_NUM_CHOICES, call->options.num_choices);
    for (int32_t i = 0; i < call->num_choices; i++) {
        api_choice *choice = &call->choices[i];
        api_mailbox_submit(&choice->mail);
        engine_submit(call->settings->engine, &choice->request);
    }
}

void api_call_cancel(api_call *call)
{
    for (int32_t i = 0; call->is_submitted && i < call->num_choices; i++) {
        if (!api_mailbox_has_ended(&call->choices[i].mail)) {
            engine_cancel(call->settings->engine, &call->choices[i].request);
        }
    }
}

bool api_call_has_ended(const api_call *call)
{
    for (int32_t i = 0; call->is_submitted && i < call->num_choices; i++) {
        if (!api_mailbox_has_ended(&call->choices[i].mail)) {
            return false;
        }
    }
    return true;
}

static bool has_news(const api_choice *choice)
{
    return !choice->has_begun || api_mailbox_num(&choice->mail) > choice->num_read ||
           (!choice->has_ended && api_mailbox_has_ended(&choice->mail));
}

bool api_call_has_news(const api_call *call)
{
    if (!call->options.is_stream) {
        return !call->is_done && call->is_submitted && api_call_has_ended(call);
    }
    for (int32_t i = 0; !call->is_done && i < call->num_choices; i++) {
        if (has_news(&call->choices[i])) {
            return true;
        }
    }
    return false;
}

mla_status api_call_write(api_call *call, byte_buffer *out, bool *is_done, mla_error *err)
{
    api_text text = api_text_begin(out, err);
    if (!call->is_done && call->options.is_stream) {
        api_stream_write(call, &text);
    } else if (!call->is_done && call->is_submitted && api_call_has_ended(call)) {
        api_reply_write(call, &text);
    }
    *is_done = call->is_done;
    return api_text_end(&text);
}

api_status api_call_status(const api_call *call)
{
    return call->status;
}

api_call_counts api_call_count(const api_call *call)
{
    api_call_counts counts = {.num_choices = call->num_choices};
    for (int32_t i = 0; i < call->prompts.num; i++) {
        counts.prompt_tokens += call->prompts.list[i].num;
    }
    for (int32_t i = 0; i < call->num_choices; i++) {
        const api_mailbox *mail = &call->choices[i].mail;
        bool has_ended = api_mailbox_has_ended(mail);
        counts.new_tokens += api_mailbox_num(mail);
        counts.num_ended += has_ended ? 1 : 0;
        counts.cached_tokens += has_ended ? mail->result.num_cached : 0;
    }
    return counts;
}
