/* http_rig.h - HTTP over socket pairs, in front of a server that does as the path says:
 *
 *     /now     replies at once with the length of the body: "0 bytes"
 *     /keep    keeps the request until the test replies
 *     /stream  begins a stream, and keeps the request
 *
 * Everything is in one thread: http_rig_turn lets the server's side do what there is to do. */
#ifndef TEST_HTTP_RIG_H
#define TEST_HTTP_RIG_H

#include "attention/context.h"
#include "server/http/http.h"

enum { HTTP_RIG_MAX_KEPT = 64 };

typedef struct http_rig {
    mla_context books;
    loop loop;
    http_server *http;
    api_transport counts;
    http_request *kept[HTTP_RIG_MAX_KEPT];
    int num_kept;
    int num_requests, num_gone, num_refused;
    int last_refusal;      /* the status of the last one */
    uint64_t server_bytes; /* when it was open */
} http_rig;

/* allocator: NULL: the C library's. false: there was no memory; nothing is open. */
bool http_rig_open(http_rig *self, const mla_allocator *allocator);
void http_rig_close(http_rig *self); /* then nothing is in the books */

int http_rig_connect(http_rig *self); /* the client's end, which does not block */
void http_rig_turn(http_rig *self);
/* Class server is back where it was. */
bool http_rig_is_clean(const http_rig *self);

void http_rig_send(int file, const char *text);
/* What has come: the bytes in out, a NUL behind them; *is_ended: the server closed. */
size_t http_rig_receive(int file, char *out, size_t room, bool *is_ended);

#endif
