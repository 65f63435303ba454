/* state.h - what the files of this room share: the server's parts. */
#ifndef MLA_SERVER_STATE_H
#define MLA_SERVER_STATE_H

#include "server/access_log.h"
#include "server/api/settings.h"
#include "server/engine_thread.h"
#include "server/server.h"
#include "server/worker.h"

struct server {
    server_options options;
    mla_context *context;
    api_settings settings;
    api_metrics metrics;
    access_log log;
    loop loop;
    http_server *http;
    worker worker;
    engine_thread engine;
    exchange *exchanges;               /* all there are */
    int32_t num_exchanges, num_queued; /* queued: for the worker */

    struct event terminate_event, interrupt_event;
    int64_t give_up_ns; /* of draining; 0: it does not drain */
    bool has_cancelled; /* the time to drain is over */
    int second_signal;
    char text[API_MAX_FAILURE_BYTES]; /* of the failure that is being sent */
};

/* routes.c */
void server_route(server *self, http_request *request);
void server_reply(server *self, http_request *request, const http_answer *answer);
void server_reply_failure(server *self, http_request *request, const api_failure *failure);

/* pages.c: what a GET says */
void server_say_page(server *self, http_request *request);
void server_say_health(server *self, http_request *request);
void server_say_metrics(server *self, http_request *request);
void server_say_version(server *self, http_request *request);
void server_say_models(server *self, http_request *request);
void server_say_ledger(server *self, http_request *request);

/* shutdown.c */
mla_status server_watch_signals(server *self, mla_error *err);
void server_forget_signals(server *self);
void server_drain(server *self);
bool server_is_draining(const server *self);
void server_check_drained(server *self, int64_t now_ns);

#endif
