/* exchange.h - one POST from its body to the end of its reply. It belongs to the loop's thread,
 * but for the moment that the worker has it. */
#ifndef MLA_SERVER_EXCHANGE_H
#define MLA_SERVER_EXCHANGE_H

#include "server/api/call.h"
#include "server/http/http.h"

struct server;

typedef enum exchange_kind {
    EXCHANGE_COMPLETION,
    EXCHANGE_CHAT,
    EXCHANGE_TOKENIZE,
    EXCHANGE_DETOKENIZE,
} exchange_kind;

typedef enum exchange_stage {
    EXCHANGE_QUEUED,  /* for the worker, or in its hands */
    EXCHANGE_RUNNING, /* its engine requests were submitted */
} exchange_stage;

typedef struct exchange exchange;
struct exchange {
    struct server *server;
    exchange *previous, *next; /* all there are */
    exchange *next_job;        /* in the worker's queue, or of those it has done */
    http_request *request;     /* NULL: the client is gone */
    exchange_kind kind;
    exchange_stage stage;
    int64_t begin_ns, sent_ns;
    bool is_stream;

    byte_buffer body; /* of the request */
    byte_buffer out;  /* of the reply */
    bool is_good;     /* otherwise failure says why */
    api_failure failure;
    api_call *call; /* NULL: none, or not yet */
};

/* Takes the request's body, and the request until it is replied to. */
void exchange_begin(struct server *on, http_request *request, exchange_kind kind);
/* The worker has done with it. */
void exchange_go_on(exchange *self);
/* The engine has told something. */
void exchange_look(exchange *self);
/* The client is gone. */
void exchange_leave(exchange *self);
/* The server ends: as if the client had cancelled, but the client is told. */
void exchange_cancel(exchange *self);
/* A comment, where the stream has said nothing for a while. */
void exchange_tick(exchange *self, int64_t now_ns);

/* The worker's part: from the body to the engine requests, or to the reply. */
void exchange_prepare(exchange *self);

#endif
