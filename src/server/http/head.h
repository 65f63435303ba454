/* head.h - the first part of an HTTP/1.1 request: its line and its headers. What could be read
 * in two ways is refused, so that no proxy in front can disagree about where a request ends. */
#ifndef MLA_SERVER_HTTP_HEAD_H
#define MLA_SERVER_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HTTP_MAX_PATH = 512,
    HTTP_MAX_METHOD = 16,
    HTTP_MAX_KEY = 512, /* of an Authorization header */
    HTTP_MAX_ASKED = 512,
    HTTP_MAX_HEADERS = 100,
};

typedef struct http_head {
    char method[HTTP_MAX_METHOD];
    char path[HTTP_MAX_PATH]; /* decoded, without a query; begins with '/', or is "*" */
    char authorization[HTTP_MAX_KEY];   /* "" where there is none */
    char asked_headers[HTTP_MAX_ASKED]; /* of a browser's OPTIONS; "" where there is none */
    uint64_t content_length;
    bool has_length, is_chunked;
    bool is_old; /* HTTP/1.0: no chunks */
    bool keeps_alive;
    bool expects_continue;

    int num_headers;
    bool has_host, says_close, says_keep;
} http_head;

/* Why a head is refused: the status, and a sentence in static storage. */
typedef struct http_refusal {
    int status;
    const char *text;
} http_refusal;

/* The number of bytes up to and with the empty line; 0: not all is there. from: where the
 * last search ended, written. */
size_t http_head_find_end(const char *data, size_t bytes, size_t *from);

/* data: [bytes], as http_head_find_end says; read. true, or *refusal says why not. */
bool http_head_parse(const char *data, size_t bytes, http_head *out, http_refusal *refusal);

/* A chunk's first line without its end: "1a;name=value". false: it is none, or more than
 * most. */
bool http_chunk_size(const char *line, size_t bytes, uint64_t most, uint64_t *out);

#endif
