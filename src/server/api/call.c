/* call.c - the life of a call: see call.h. */
#include "server/api/call.h"

bool api_call_open(const api_settings *settings, api_kind kind, const char *body,
                   size_t bytes, api_call **out, api_failure *failure)
{
    (void)settings;
    (void)kind;
    (void)body;
    (void)bytes;
    (void)out;
    return api_fail(failure, API_NOT_IMPLEMENTED, NULL, NULL, "not served yet");
}

void api_call_close(api_call **call)
{
    *call = NULL;
}

bool api_call_is_stream(const api_call *call)
{
    return !call;
}

int32_t api_call_num_requests(const api_call *call)
{
    return call ? 1 : 0;
}

engine_request *api_call_request(api_call *call, int32_t i)
{
    (void)call;
    (void)i;
    return NULL;
}

void api_call_submit(api_call *call)
{
    (void)call;
}

void api_call_cancel(api_call *call)
{
    (void)call;
}

bool api_call_has_ended(const api_call *call)
{
    return !call;
}

bool api_call_has_news(const api_call *call)
{
    return !call;
}

mla_status api_call_write(api_call *call, byte_buffer *out, bool *is_done, mla_error *err)
{
    (void)call;
    (void)out;
    (void)err;
    *is_done = true;
    return MLA_OK;
}

api_status api_call_status(const api_call *call)
{
    return call ? API_OK : API_INTERNAL;
}

api_call_counts api_call_count(const api_call *call)
{
    (void)call;
    return (api_call_counts){0};
}
