/* state.h - what the files of this folder share: a connection and the request it is at. */
#ifndef MLA_SERVER_HTTP_STATE_H
#define MLA_SERVER_HTTP_STATE_H

#include <event2/buffer.h>

#include "server/api/failure.h"
#include "server/http/http.h"

typedef struct http_connection http_connection;

enum {
    HTTP_READ_BYTES = 16384, /* at once */
    HTTP_READS_A_TURN = 16,  /* then others come */
    HTTP_MAX_PEER = 46,
    HTTP_MAX_AHEAD = 32768,      /* bytes sent while a reply is pending */
    HTTP_EXTRA_CONNECTIONS = 64, /* beyond max_connections, to be told 503 */
};

typedef enum http_phase {
    HTTP_HEAD,   /* reads a head; `in` is empty between requests */
    HTTP_BODY,   /* reads a body */
    HTTP_REPLY,  /* a reply is pending or not wholly sent; nothing is read */
    HTTP_LINGER, /* the last reply is sent; what still comes is thrown away */
} http_phase;

struct http_request {
    http_connection *connection;
    http_head head;
    byte_buffer body;
    uint64_t chunk_left; /* of a chunked body's chunk */
    bool is_in_chunk, is_in_trailer;
    int32_t num_trailer_lines;
    bool is_stream; /* http_reply_begin was called */
    void *user;
};

struct http_connection {
    http_server *server;
    http_connection *previous, *next;
    struct event event; /* edge-triggered, of all kinds, as long as it lives */
    int file;
    char peer[HTTP_MAX_PEER];
    struct evbuffer *in, *out;
    http_phase phase;
    int64_t deadline_ns;   /* 0: none */
    size_t searched;       /* of a head */
    http_request *request; /* NULL: none, or its reply is complete */
    bool is_last;          /* closes after this reply */
    bool is_flooded;       /* more was sent ahead than may be */
    bool is_refused;       /* one too many */
    bool is_broken;        /* must be dropped from the loop */
    bool is_running;       /* connection_run is below us on the stack */
};

struct http_server {
    loop *loop;
    http_options options;
    struct event listen_event, tick_event;
    int listen_file;         /* -1: none */
    int64_t listen_again_ns; /* 0: it listens */
    int64_t tick_ns;         /* of the last tick */
    int32_t port, num_connections;
    http_connection *connections;
    bool is_draining;
    bool was_late;                    /* the last tick */
    char block[HTTP_READ_BYTES];      /* that was just read */
    char text[API_MAX_FAILURE_BYTES]; /* of the refusal that is being sent */
};

/* connection.c */
/* file: consumed. NULL: there is no memory. */
http_connection *http_connection_open(http_server *server, int file);
void http_connection_close(http_connection *self); /* the client is gone */
void http_connection_again(http_connection *self); /* runs soon, from the loop */
void http_connection_check_time(http_connection *self, int64_t now_ns);

/* read.c: both return false where more bytes are needed. */
bool http_read_head(http_connection *self);
bool http_read_body(http_connection *self);
void http_request_free(http_connection *self); /* there may be none */

/* reply.c */
void http_refuse(http_connection *self, int status, const char *text);
bool http_flush(http_connection *self); /* false: the client is gone */

/* status_text.c */
const char *http_status_words(int status);

/* listen.c */
mla_status http_listen(http_server *self, mla_error *err);
void http_listen_again(http_server *self, int64_t now_ns);
void http_listen_end(http_server *self);

#endif
