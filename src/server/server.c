/* server.c - putting the parts together, and taking them apart: see server.h. */
#include "server/server.h"

#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "server/state.h"

enum { MAX_HEAD_BYTES = 32768, MAX_UNSENT_BYTES = 1 << 20 };

static void note_request(void *user, http_request *request)
{
    server_route(user, request);
}

static void note_gone(void *user, http_request *request)
{
    (void)user;
    exchange_leave(http_request_user(request));
}

static void note_refusal(void *user, const char *peer, int status, const char *text)
{
    server *self = user;
    const access_entry entry = {
        .peer = peer, .method = "-", .path = "-", .status = status, .note = text};
    access_log_write(&self->log, &entry);
}

static void note_tick(void *user)
{
    server *self = user;
    int64_t now_ns = mlai_now_ns();
    for (exchange *at = self->exchanges; at; at = at->next) {
        exchange_tick(at, now_ns);
    }
    server_check_drained(self, now_ns);
}

/* The worker has done something, or the engine has. */
static void note_wake(void *user)
{
    server *self = user;
    exchange *next = NULL;
    for (exchange *at = worker_take_done(&self->worker); at; at = next) {
        next = at->next_job;
        exchange_go_on(at);
    }
    for (exchange *at = self->exchanges; at; at = next) {
        next = at->next;
        exchange_look(at);
    }
    if (atomic_load(&self->engine.is_dead)) {
        server_drain(self);
    }
}

static void wake(void *user)
{
    server *self = user;
    loop_wake(&self->loop);
}

static api_settings settings_of(server *self)
{
    const server_options *options = &self->options;
    return (api_settings){.engine = options->engine,
                          .ledger = options->ledger,
                          .model_name = options->model_name,
                          .model_path = options->model_path,
                          .version = options->version,
                          .start_seconds = (int64_t)time(NULL),
                          .defaults = options->defaults,
                          .allows_control = options->allows_control,
                          .longest_token_bytes =
                              api_longest_token(engine_tokenizer_of(options->engine)),
                          .max_body_bytes = options->max_body_bytes,
                          .wake = wake,
                          .user = self,
                          .metrics = &self->metrics,
                          .is_vllm_compatible = options->is_vllm_compatible};
}

static http_options http_options_of(server *self)
{
    const server_options *options = &self->options;
    return (http_options){.ledger = options->ledger,
                          .host = options->host,
                          .port = options->port,
                          .max_connections = options->max_connections,
                          .max_head_bytes = MAX_HEAD_BYTES,
                          .max_body_bytes = options->max_body_bytes,
                          .max_unsent_bytes = MAX_UNSENT_BYTES,
                          .max_server_bytes = options->max_server_bytes,
                          .read_timeout_ns = options->read_timeout_ns,
                          .write_timeout_ns = options->write_timeout_ns,
                          .idle_timeout_ns = options->idle_timeout_ns,
                          .cors_origin = options->cors_origin,
                          .on_request = note_request,
                          .on_gone = note_gone,
                          .on_tick = note_tick,
                          .on_refusal = note_refusal,
                          .user = self,
                          .counts = &self->metrics.transport};
}

static mla_status start(server *self, mla_error *err)
{
    const server_options *options = &self->options;
    const http_options http = http_options_of(self);
    self->settings = settings_of(self);
    MLAI_TRY(loop_open(&self->loop, self->context, options->max_server_bytes, note_wake,
                       self, err));
    MLAI_TRY(server_watch_signals(self, err));
    MLAI_TRY(worker_open(&self->worker, &self->loop, err));
    MLAI_TRY(engine_thread_open(&self->engine, options->engine, &self->loop, err));
    return http_server_open(&self->loop, &http, &self->http, err);
}

mla_status server_open(const server_options *options, server **out, mla_error *err)
{
    void *taken = NULL;
    mla_context *context = engine_context_of(options->engine);
    MLAI_TRY(mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_SERVER, sizeof(server),
                             _Alignof(server), &taken, err));
    server *self = taken;
    *self = (server){
        .options = *options, .context = context, .log = {.file = options->log_file}};
    mla_status status = start(self, err);
    if (status != MLA_OK) {
        server_close(&self);
        return status;
    }
    *out = self;
    return MLA_OK;
}

int32_t server_port(const server *self)
{
    return http_server_port(self->http);
}

mla_status server_run(server *self, int *signal_number, mla_error *err)
{
    int ended = event_base_dispatch(self->loop.base);
    *signal_number = self->second_signal;
    MLAI_CHECK(ended == 0, MLA_ERR_INTERNAL, "the server's event loop ended with %d",
               ended);
    if (atomic_load(&self->engine.is_dead)) {
        *err = self->engine.error;
        return err->status;
    }
    return MLA_OK;
}

/* What the engine still has was cancelled when its connections were dropped. */
static void await_exchanges(server *self)
{
    while (self->num_exchanges > 0) {
        (void)event_base_loop(self->loop.base, EVLOOP_ONCE);
    }
}

void server_close(server **server_to_close)
{
    server *self = *server_to_close;
    if (!self) {
        return;
    }
    http_server_close(&self->http);
    if (self->exchanges) {
        await_exchanges(self);
    }
    worker_close(&self->worker);
    engine_thread_close(&self->engine);
    server_forget_signals(self);
    loop_close(&self->loop);
    mla_memory_give(self->context, MLA_SPACE_HOST, MLA_FOR_SERVER, sizeof *self, self);
    *server_to_close = NULL;
}
