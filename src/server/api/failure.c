/* failure.c - refusals in OpenAI's words: see failure.h. */
#include "server/api/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"
#include "server/api/text.h"

static const struct failure_type {
    api_status status;
    const char *type;
} types[] = {
    {API_UNAUTHORIZED, "authentication_error"}, {API_FORBIDDEN, "permission_error"},
    {API_NOT_FOUND, "not_found_error"},         {API_TOO_MANY, "rate_limit_error"},
    {API_UNAVAILABLE, "overloaded_error"},
};

static const char *type_of(api_status status)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].status == status) {
            return types[i].type;
        }
    }
    return status < API_INTERNAL ? "invalid_request_error" : "server_error";
}

enum { PIECE_BYTES = 32, GROWTH = 3, MAX_HELD = 4 };

/* Copies text to out [capacity], ended by a zero; whole characters only. */
static void copy_clean(const char *text, char *out, size_t capacity)
{
    detokenizer state = {.num_held = 0};
    char clean[GROWTH * (PIECE_BYTES + MAX_HELD)];
    size_t left = strlen(text);
    size_t num = 0;
    bool is_end = false;
    while (!is_end) {
        size_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        is_end = piece == 0;
        size_t bytes = is_end ? detokenizer_finish(&state, clean)
                              : detokenizer_feed(&state, text, piece, clean);
        if (bytes >= capacity - num) {
            break;
        }
        memcpy(out + num, clean, bytes);
        num += bytes;
        text += piece;
        left -= piece;
    }
    out[num] = 0;
}

bool api_fail(api_failure *failure, api_status status, const char *param, const char *code,
              const char *format, ...)
{
    char message[sizeof failure->message];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(message, sizeof message, format, values);
    va_end(values);
    *failure = (api_failure){.status = status, .type = type_of(status), .code = code};
    copy_clean(message, failure->message, sizeof failure->message);
    copy_clean(param ? param : "", failure->param, sizeof failure->param);
    return false;
}

bool api_fail_of(api_failure *failure, const mla_error *err, const char *param)
{
    bool is_request = err->status == MLA_ERR_ARGUMENT ||
                      err->status == MLA_ERR_BUFFER_SMALL ||
                      err->status == MLA_ERR_UNSUPPORTED;
    if (err->status == MLA_ERR_NO_MEMORY) {
        return api_fail(failure, API_UNAVAILABLE, NULL, "out_of_memory", "%s",
                        err->message);
    }
    return api_fail(failure, is_request ? API_BAD_REQUEST : API_INTERNAL,
                    is_request ? param : NULL, NULL, "%s", err->message);
}

static char *put(const char *text, char *out)
{
    while (*text) {
        *out++ = *text++;
    }
    return out;
}

static char *put_field(const char *name, const char *value, char *out)
{
    out = put(name, out);
    if (!value) {
        return put("null", out);
    }
    *out++ = '"';
    out = api_escape(value, strlen(value), out);
    *out++ = '"';
    return out;
}

_Static_assert(API_ESCAPED_BYTES *(sizeof((api_failure *)0)->message +
                                   sizeof((api_failure *)0)->param) <
                   API_MAX_FAILURE_BYTES - 256,
               "a printed failure fits, with its names, its type and its code");

size_t api_failure_print(const api_failure *failure, char *out)
{
    char *at = out;
    at = put_field("{\"error\":{\"message\":", failure->message, at);
    at = put_field(",\"type\":", failure->type, at);
    at = put_field(",\"param\":", failure->param[0] ? failure->param : NULL, at);
    at = put_field(",\"code\":", failure->code, at);
    at = put("}}", at);
    return (size_t)(at - out);
}
