/* failure.h - why a request was not answered: the HTTP status and OpenAI's error object. It
 * lives in the caller's memory and is filled without any allocation, so that running out of
 * memory can be said, too. */
#ifndef MLA_SERVER_API_FAILURE_H
#define MLA_SERVER_API_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/byte_buffer.h"

typedef enum api_status {
    API_OK = 200,
    API_BAD_REQUEST = 400,
    API_UNAUTHORIZED = 401,
    API_FORBIDDEN = 403,
    API_NOT_FOUND = 404,
    API_WRONG_METHOD = 405,
    API_TIMED_OUT = 408,
    API_TOO_LARGE = 413,
    API_WRONG_MEDIA = 415,
    API_TOO_MANY = 429,
    API_HEADERS_TOO_LARGE = 431,
    API_DISCONNECTED = 499, /* never sent: the client has left */
    API_INTERNAL = 500,
    API_NOT_IMPLEMENTED = 501,
    API_UNAVAILABLE = 503,
} api_status;

typedef struct api_failure {
    api_status status;
    const char *type;  /* static; by status */
    const char *code;  /* static; NULL: null */
    char param[64];    /* the field that is to blame; "": null */
    char message[496]; /* one sentence with the offending values; UTF-8 */
} api_failure;

/* Fills *failure, and returns false so that a refusal is one line. param: read, NULL for none;
 * code: static, NULL for none. What is not UTF-8 in the sentence becomes U+FFFD. */
bool api_fail(api_failure *failure, api_status status, const char *param, const char *code,
              const char *format, ...) __attribute__((format(printf, 5, 6)));

/* The same of an error of a room below: MLA_ERR_NO_MEMORY is 503 out_of_memory, what the
 * request is to blame for (ARGUMENT, BUFFER_SMALL, UNSUPPORTED) is 400, anything else 500. */
bool api_fail_of(api_failure *failure, const mla_error *err, const char *param);

/* The most bytes that a printed failure has, every byte of it escaped. */
enum { API_MAX_FAILURE_BYTES = 4096 };

/* Writes {"error":{"message","type","param","code"}} to out [API_MAX_FAILURE_BYTES]; returns
 * the number of bytes. As the whole body of a reply, or after "data: " in a stream. */
size_t api_failure_print(const api_failure *failure, char *out);

#endif
