/* http.h - HTTP/1.1 over libevent's loop: requests in, whole replies or streams out. All of it
 * belongs to the loop's thread.
 *
 * A connection is read only while no reply is pending, so what a client sends ahead waits in
 * the kernel. A client that leaves, half-closes or resets while its reply is pending is
 * noticed at once, whether anything is being written or not. */
#ifndef MLA_SERVER_HTTP_HTTP_H
#define MLA_SERVER_HTTP_HTTP_H

#include "base/ledger.h"
#include "server/api/metrics.h"
#include "server/byte_buffer.h"
#include "server/http/head.h"
#include "server/loop.h"

typedef struct http_server http_server;
typedef struct http_request http_request;

typedef struct http_options {
    const mlai_ledger *ledger; /* of the loop's context */
    const char *host;          /* a name or an address; NULL: does not listen */
    int32_t port;              /* 0: the kernel chooses */
    int32_t max_connections;
    size_t max_head_bytes, max_body_bytes;
    size_t max_unsent_bytes;   /* of a stream: a slower reader is dropped */
    uint64_t max_server_bytes; /* of class server, in all: no body is begun beyond it */
    int64_t
        read_timeout_ns; /* from the first byte of a head to its last; the same for a body */
    int64_t write_timeout_ns; /* without any progress */
    int64_t idle_timeout_ns;  /* between requests, and before the first */
    const char *cors_origin;  /* NULL: nothing is said about other origins */

    /* A request is whole. Replies now, or keeps it and replies later. */
    void (*on_request)(void *user, http_request *request);
    /* The client of a kept request is gone; the request may not be touched after this. */
    void (*on_gone)(void *user, http_request *request);
    void (*on_tick)(void *user); /* every 100 ms */
    /* A request was refused here, before anybody else saw it: for the log. peer, text: read. */
    void (*on_refusal)(void *user, const char *peer, int status, const char *text);
    void *user;
    api_transport *counts;
} http_options;

/* Everything of options is copied but what its pointers point to. out: owned,
 * http_server_close, which drops every connection. */
mla_status http_server_open(loop *on, const http_options *options, http_server **out,
                            mla_error *err);
void http_server_close(http_server **server);

int32_t http_server_port(const http_server *server);
int32_t http_server_num_connections(const http_server *server);
bool http_server_is_busy(const http_server *server); /* a reply is not wholly sent */
/* From now on every reply is its connection's last. New connections are still taken, so that
 * their requests can be refused. */
void http_server_drain(http_server *server);
/* Takes a connected socket, as if it had been accepted. It is closed on failure, too. */
void http_server_adopt(http_server *server, int file);

/* -------------------------------------------------------------- a request */

const http_head *http_request_head(const http_request *request);
const char *http_request_peer(const http_request *request); /* "127.0.0.1", or "" */
/* The body, which then is the caller's. */
byte_buffer http_request_take_body(http_request *request);
void http_request_set_user(http_request *request, void *user);
void *http_request_user(const http_request *request);

typedef struct http_answer {
    int status;
    const char *type;   /* Content-Type; NULL: no body */
    const char *fields; /* whole lines of more headers, each with CR LF; NULL: none */
    const char *body;   /* [bytes], read */
    size_t bytes;
} http_answer;

/* The whole reply. The request may not be touched after this. */
void http_reply(http_request *request, const http_answer *answer);

/* A reply in pieces: its head goes out at once. */
void http_reply_begin(http_request *request, const http_answer *answer);
/* false: the client does not read and is dropped; on_gone follows from the loop. */
bool http_reply_add(http_request *request, const char *data, size_t bytes);
/* The request may not be touched after this. */
void http_reply_end(http_request *request);
/* The same for a reply that cannot go on: the client sees it break off. */
void http_reply_break(http_request *request);

#endif
