/* body.c - from bytes to a JSON object: see body.h. */
#include "server/api/body.h"

#include <string.h>

enum { BASE_VALUES = 1 << 16, VALUES_A_TOKEN = 2 };

/* What a scan of the bytes finds, strings left out. */
typedef struct body_outline {
    int64_t num_values; /* no less than there are */
    int32_t depth, deepest;
} body_outline;

/* The closing quotation mark of the string that begins before at, or the end. */
static size_t skip_string(const char *body, size_t bytes, size_t at)
{
    while (at < bytes && body[at] != '"') {
        at += body[at] == '\\' ? 2 : 1;
    }
    return at;
}

static body_outline outline_of(const char *body, size_t bytes)
{
    body_outline found = {.num_values = 1};
    for (size_t at = 0; at < bytes; at++) {
        char byte = body[at];
        if (byte == '"') {
            at = skip_string(body, bytes, at + 1);
        } else if (byte == '[' || byte == '{') {
            found.num_values++;
            found.depth++;
            found.deepest = found.depth > found.deepest ? found.depth : found.deepest;
        } else if (byte == ']' || byte == '}') {
            found.depth--;
        } else if (byte == ',') {
            found.num_values++;
        }
    }
    return found;
}

/* A parsed value takes some hundred bytes: a body is not given a multiple of its own size
 * before it is known to be one that could be served. */
static bool check_outline(const api_settings *settings, const char *body, size_t bytes,
                          api_failure *failure)
{
    const engine_limits *limits = engine_limits_of(settings->engine);
    int64_t max_values = BASE_VALUES + VALUES_A_TOKEN * limits->max_context_tokens;
    body_outline found = outline_of(body, bytes);
    if (found.deepest > API_MAX_JSON_DEPTH) {
        return api_fail(failure, API_BAD_REQUEST, NULL, NULL,
                        "the body nests %d arrays and objects; %d at most", found.deepest,
                        API_MAX_JSON_DEPTH);
    }
    if (found.num_values > max_values) {
        return api_fail(failure, API_BAD_REQUEST, NULL, NULL,
                        "the body has about %lld values; %lld at most",
                        (long long)found.num_values, (long long)max_values);
    }
    return true;
}

bool api_body_read(const api_settings *settings, const char *body, size_t bytes,
                   json_t **out, api_failure *failure)
{
    json_error_t error;
    memset(&error, 0, sizeof error);
    if (bytes == 0) {
        return api_fail(failure, API_BAD_REQUEST, NULL, NULL, "the body is empty");
    }
    if (!check_outline(settings, body, bytes, failure)) {
        return false;
    }
    json_t *read =
        json_scope_parse(body, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (json_scope_has_failed()) {
        json_decref(read);
        return api_fail(failure, API_UNAVAILABLE, NULL, "out_of_memory",
                        "out of memory for a body of %zu bytes", bytes);
    }
    if (!read) {
        return api_fail(failure, API_BAD_REQUEST, NULL, NULL,
                        "the body is not JSON: line %d, column %d: %s", error.line,
                        error.column, error.text);
    }
    if (!json_is_object(read)) {
        api_fail(failure, API_BAD_REQUEST, NULL, NULL, "the body is %s, not an object",
                 json_words_of(read).text);
        json_decref(read);
        return false;
    }
    *out = read;
    return true;
}
