/* simple.c - the endpoints that need no engine step: see simple.h. */
#include "server/api/simple.h"

static bool not_yet(api_failure *failure)
{
    return api_fail(failure, API_NOT_IMPLEMENTED, NULL, NULL, "not served yet");
}

bool api_tokenize(const api_settings *settings, const char *body, size_t bytes,
                  byte_buffer *out, api_failure *failure)
{
    (void)settings, (void)body, (void)bytes, (void)out;
    return not_yet(failure);
}

bool api_detokenize(const api_settings *settings, const char *body, size_t bytes,
                    byte_buffer *out, api_failure *failure)
{
    (void)settings, (void)body, (void)bytes, (void)out;
    return not_yet(failure);
}

bool api_models(const api_settings *settings, const char *name, byte_buffer *out,
                api_failure *failure)
{
    (void)settings, (void)name, (void)out;
    return not_yet(failure);
}

bool api_version(const api_settings *settings, byte_buffer *out, api_failure *failure)
{
    (void)settings, (void)out;
    return not_yet(failure);
}

bool api_metrics_write(const api_settings *settings, byte_buffer *out, api_failure *failure)
{
    (void)settings, (void)out;
    return not_yet(failure);
}
