/* exchange.c - queue, worker, engine, reply; and how each of them is left: see exchange.h. */
#include "server/exchange.h"

#include "base/clock.h"
#include "base/status.h"
#include "server/api/simple.h"
#include "server/state.h"

#define JSON_TYPE "application/json"
#define ENDING    "the server is shutting down"

static void link_exchange(exchange *self)
{
    server *on = self->server;
    self->next = on->exchanges;
    if (self->next) {
        self->next->previous = self;
    }
    on->exchanges = self;
    on->num_exchanges++;
}

static void unlink_exchange(exchange *self)
{
    server *on = self->server;
    if (self->previous) {
        self->previous->next = self->next;
    } else {
        on->exchanges = self->next;
    }
    if (self->next) {
        self->next->previous = self->previous;
    }
    on->num_exchanges--;
}

/* Nobody else knows of it any more. */
static void end(exchange *self)
{
    api_call_close(&self->call);
    byte_buffer_free(&self->body);
    byte_buffer_free(&self->out);
    unlink_exchange(self);
    mla_memory_give(self->server->context, MLA_SPACE_HOST, MLA_FOR_SERVER, sizeof *self,
                    self);
}

static void log_end(exchange *self, int status)
{
    api_call_counts counts = {0};
    if (self->stage == EXCHANGE_RUNNING) { /* before, the call is the worker's */
        counts = api_call_count(self->call);
    }
    const http_head *head = http_request_head(self->request);
    const access_entry entry = {.peer = http_request_peer(self->request),
                                .method = head->method,
                                .path = head->path,
                                .status = status,
                                .took_ns = mlai_now_ns() - self->begin_ns,
                                .prompt_tokens = counts.prompt_tokens,
                                .cached_tokens = counts.cached_tokens,
                                .new_tokens = counts.new_tokens,
                                .note = self->is_stream ? "stream" : ""};
    access_log_write(&self->server->log, &entry);
}

static void reply(exchange *self, const http_answer *answer)
{
    http_request *request = self->request;
    log_end(self, answer->status);
    self->request = NULL;
    http_reply(request, answer);
}

static void reply_failure(exchange *self)
{
    char *body = self->server->text;
    const http_answer answer = {.status = (int)self->failure.status,
                                .type = JSON_TYPE,
                                .fields = self->failure.status == API_TOO_MANY ||
                                                  self->failure.status == API_UNAVAILABLE
                                              ? "Retry-After: 1\r\n"
                                              : NULL,
                                .body = body,
                                .bytes = api_failure_print(&self->failure, body)};
    reply(self, &answer);
}

void exchange_begin(struct server *on, http_request *request, exchange_kind kind)
{
    void *taken = NULL;
    api_failure failure;
    if (mla_memory_take(on->context, MLA_SPACE_HOST, MLA_FOR_SERVER, sizeof(exchange),
                        _Alignof(exchange), &taken, NULL) != MLA_OK) {
        (void)api_fail(&failure, API_UNAVAILABLE, NULL, "out_of_memory",
                       "the server's memory for requests is in use");
        server_reply_failure(on, request, &failure);
        return;
    }
    exchange *self = taken;
    *self = (exchange){.server = on,
                       .request = request,
                       .kind = kind,
                       .begin_ns = mlai_now_ns(),
                       .body = http_request_take_body(request),
                       .out = {.context = on->context}};
    http_request_set_user(request, self);
    link_exchange(self);
    on->num_queued++;
    worker_add(&on->worker, self);
}

void exchange_prepare(exchange *self)
{
    const api_settings *settings = &self->server->settings;
    const char *body = self->body.num > 0 ? self->body.data : "";
    size_t bytes = self->body.num;
    switch (self->kind) {
    case EXCHANGE_TOKENIZE:
        self->is_good = api_tokenize(settings, body, bytes, &self->out, &self->failure);
        break;
    case EXCHANGE_DETOKENIZE:
        self->is_good = api_detokenize(settings, body, bytes, &self->out, &self->failure);
        break;
    case EXCHANGE_CHAT:
    case EXCHANGE_COMPLETION:
    default:
        self->is_good =
            api_call_open(settings, self->kind == EXCHANGE_CHAT ? API_CHAT : API_COMPLETION,
                          body, bytes, &self->call, &self->failure);
    }
    byte_buffer_free(&self->body);
}

static void begin_stream(exchange *self)
{
    const http_answer head = {.status = API_OK,
                              .type = "text/event-stream; charset=utf-8",
                              .fields = "Cache-Control: no-cache\r\n"
                                        "X-Accel-Buffering: no\r\n"};
    self->is_stream = true;
    self->sent_ns = mlai_now_ns();
    http_reply_begin(self->request, &head);
}

/* All that was prepared is done with, one way or another. */
static void submit(exchange *self)
{
    self->stage = EXCHANGE_RUNNING;
    api_call_submit(self->call);
    if (api_call_is_stream(self->call)) {
        begin_stream(self);
        exchange_look(self);
    }
}

void exchange_go_on(exchange *self)
{
    self->server->num_queued--;
    if (!self->request) {
        end(self);
        return;
    }
    if (self->server->has_cancelled) {
        self->is_good = api_fail(&self->failure, API_UNAVAILABLE, NULL, NULL, ENDING);
    }
    if (!self->is_good) {
        reply_failure(self);
        end(self);
    } else if (self->call) {
        submit(self);
    } else {
        const http_answer answer = {.status = API_OK,
                                    .type = JSON_TYPE,
                                    .body = self->out.data,
                                    .bytes = self->out.num};
        reply(self, &answer);
        end(self);
    }
}

/* The client is told by a connection that breaks off. */
static void give_up(exchange *self)
{
    http_request *request = self->request;
    log_end(self, API_INTERNAL);
    self->request = NULL;
    if (self->is_stream) {
        http_reply_break(request);
    } else {
        (void)api_fail(&self->failure, API_UNAVAILABLE, NULL, "out_of_memory",
                       "the memory for the reply is in use");
        server_reply_failure(self->server, request, &self->failure);
    }
    api_call_cancel(self->call);
}

static void send_stream(exchange *self, bool is_done)
{
    size_t bytes = self->out.num;
    self->out.num = 0;
    if (bytes > 0) {
        self->sent_ns = mlai_now_ns();
        if (!http_reply_add(self->request, self->out.data, bytes)) {
            return; /* exchange_leave follows */
        }
    }
    if (is_done) {
        http_request *request = self->request;
        log_end(self, API_OK);
        self->request = NULL;
        http_reply_end(request);
    }
}

static void send_plain(exchange *self)
{
    const http_answer answer = {.status = (int)api_call_status(self->call),
                                .type = JSON_TYPE,
                                .body = self->out.data,
                                .bytes = self->out.num};
    reply(self, &answer);
}

static void send_news(exchange *self)
{
    bool is_done = false;
    if (api_call_write(self->call, &self->out, &is_done, NULL) != MLA_OK) {
        give_up(self);
    } else if (self->is_stream) {
        send_stream(self, is_done);
    } else if (is_done) {
        send_plain(self);
    }
}

void exchange_look(exchange *self)
{
    if (self->stage != EXCHANGE_RUNNING) {
        return;
    }
    if (self->request && api_call_has_news(self->call)) {
        send_news(self);
    }
    if (!self->request && api_call_has_ended(self->call)) {
        end(self);
    }
}

void exchange_leave(exchange *self)
{
    log_end(self, API_DISCONNECTED);
    self->request = NULL;
    if (self->stage == EXCHANGE_RUNNING) {
        api_call_cancel(self->call);
        if (api_call_has_ended(self->call)) {
            end(self);
        }
    } else if (worker_remove(&self->server->worker, self)) {
        self->server->num_queued--;
        end(self);
    }
}

void exchange_cancel(exchange *self)
{
    if (self->stage == EXCHANGE_RUNNING) {
        api_call_cancel(self->call);
    } else if (worker_remove(&self->server->worker, self)) {
        self->server->num_queued--;
        (void)api_fail(&self->failure, API_UNAVAILABLE, NULL, NULL, ENDING);
        reply_failure(self);
        end(self);
    }
}

void exchange_tick(exchange *self, int64_t now_ns)
{
    static const char comment[] = ":\n\n";
    if (self->is_stream && self->request &&
        now_ns - self->sent_ns >= self->server->options.comment_interval_ns) {
        self->sent_ns = now_ns;
        (void)http_reply_add(self->request, comment, sizeof comment - 1);
    }
}
