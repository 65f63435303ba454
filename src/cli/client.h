/* client.h - HTTP/1.1 requests to a server, many at once on one thread. Each has a connection of
 * its own, which ends with its reply. */
#ifndef MLA_CLI_CLIENT_H
#define MLA_CLI_CLIENT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "server/byte_buffer.h"

enum { CLIENT_TEXT = 128, CLIENT_MAX_CALLS = 160 };

typedef struct client_address {
    char host[CLIENT_TEXT]; /* as a Host field has it, with the port */
    struct sockaddr_storage where;
    socklen_t where_bytes;
} client_address;

/* http://HOST:PORT, where HOST is a name, an IPv4 address or an IPv6 one in brackets. */
mla_status client_address_of(const char *url, client_address *out, mla_error *err);

typedef enum client_phase {
    CLIENT_HEAD,
    CLIENT_CHUNK_SIZE,
    CLIENT_CHUNK,
    CLIENT_CHUNK_END,
    CLIENT_TRAILER,
    CLIENT_COUNTED,   /* as many bytes as the head says */
    CLIENT_UNCOUNTED, /* up to the connection's end */
} client_phase;

/* Born as client_call_none. */
typedef struct client_call {
    byte_buffer out, in; /* the request; of the reply what is not parsed */
    size_t num_sent;
    byte_buffer body; /* of the reply, without its frame */
    int status;       /* 0: no head yet */
    client_phase phase;
    uint64_t left_bytes; /* of the chunk or the body */
    int file;            /* -1: none */
    bool is_done;
    int64_t begin_ns, end_ns;
    char failure[CLIENT_TEXT]; /* why there is no whole reply; "": there is, or will be */
} client_call;

client_call client_call_none(mla_context *context);

/* Connects. path: "/ledger"; body: what is posted, or NULL: a GET. What cannot be is the call's
 * failure; only memory is an error. The call is none, or done. */
mla_status client_call_begin(client_call *call, const client_address *to, const char *path,
                             const char *body, mla_error *err);
void client_call_end(client_call *call); /* gives everything back */

/* Sends and receives what is possible, and waits for that at most wait_ms. calls: [num], of
 * which those that are done or not begun are left alone. */
mla_status client_poll(client_call *const *calls, int32_t num, int wait_ms, mla_error *err);

/* client_reply.c: takes what has come out of its frame; is_end: nothing more will come. */
mla_status client_reply_take(client_call *call, bool is_end, mla_error *err);
/* The call is done. why: NULL for a good end. */
void client_call_finish(client_call *call, const char *why);

mla_status client_append(byte_buffer *to, const void *data, size_t bytes, mla_error *err);

#endif
