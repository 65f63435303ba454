/* pages.c - what is answered at once: the page, health, figures, models and the ledger. */
#include <string.h>
#include <time.h>

#include "server/api/simple.h"
#include "server/ledger_json.h"
#include "server/page/page.h"
#include "server/state.h"

#define JSON_TYPE   "application/json"
#define NS_A_SECOND UINT64_C(1000000000)

void server_say_page(server *self, http_request *request)
{
    const http_answer answer = {.status = API_OK,
                                .type = "text/html; charset=utf-8",
                                .fields = server_page_fields,
                                .body = server_page_text,
                                .bytes = strlen(server_page_text)};
    server_reply(self, request, &answer);
}

void server_say_health(server *self, http_request *request)
{
    bool is_dead = atomic_load(&self->engine.is_dead);
    api_failure failure;
    if (is_dead || server_is_draining(self)) {
        (void)api_fail(&failure, API_UNAVAILABLE, NULL, NULL,
                       is_dead ? "the engine has failed" : "the server is shutting down");
        server_reply_failure(self, request, &failure);
        return;
    }
    static const char body[] = "{\"status\":\"ok\"}";
    const http_answer answer = {
        .status = API_OK, .type = JSON_TYPE, .body = body, .bytes = sizeof body - 1};
    server_reply(self, request, &answer);
}

/* is_good: body is the reply's; otherwise failure says why not. body: consumed. */
static void reply_with(server *self, http_request *request, bool is_good, const char *type,
                       byte_buffer *body, const api_failure *failure)
{
    const http_answer answer = {
        .status = API_OK, .type = type, .body = body->data, .bytes = body->num};
    if (is_good) {
        server_reply(self, request, &answer);
    } else {
        server_reply_failure(self, request, failure);
    }
    byte_buffer_free(body);
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec used = {0};
    (void)clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * NS_A_SECOND + (uint64_t)used.tv_nsec;
}

/* This is the loop's thread. */
static void note_cpu(server *self)
{
    clockid_t of_worker = 0;
    atomic_store(&self->metrics.loop_cpu_ns, cpu_ns(CLOCK_THREAD_CPUTIME_ID));
    if (pthread_getcpuclockid(self->worker.thread, &of_worker) == 0) {
        atomic_store(&self->metrics.worker_cpu_ns, cpu_ns(of_worker));
    }
}

void server_say_metrics(server *self, http_request *request)
{
    note_cpu(self);
    api_failure failure;
    byte_buffer body = {.context = self->context};
    bool is_good = api_metrics_write(&self->settings, &body, &failure);
    reply_with(self, request, is_good, "text/plain; version=0.0.4; charset=utf-8", &body,
               &failure);
}

void server_say_version(server *self, http_request *request)
{
    api_failure failure;
    byte_buffer body = {.context = self->context};
    bool is_good = api_version(&self->settings, &body, &failure);
    reply_with(self, request, is_good, JSON_TYPE, &body, &failure);
}

void server_say_models(server *self, http_request *request)
{
    static const char prefix[] = "/v1/models/";
    const char *path = http_request_head(request)->path;
    const char *name =
        strncmp(path, prefix, sizeof prefix - 1) == 0 ? path + sizeof prefix - 1 : NULL;
    api_failure failure;
    byte_buffer body = {.context = self->context};
    bool is_good =
        api_models(&self->settings, name && *name ? name : NULL, &body, &failure);
    reply_with(self, request, is_good, JSON_TYPE, &body, &failure);
}

void server_say_ledger(server *self, http_request *request)
{
    mla_error error = {0};
    api_failure failure;
    byte_buffer body = {.context = self->context};
    const ledger_view view = {.context = self->context,
                              .ledger = self->options.ledger,
                              .engine = self->options.engine,
                              .preparation = self->options.timeline,
                              .phase = server_is_draining(self) ? "draining" : "serving"};
    bool is_good = ledger_view_write(&view, &body, &error) == MLA_OK;
    if (!is_good) {
        (void)api_fail_of(&failure, &error, NULL);
    }
    reply_with(self, request, is_good, JSON_TYPE, &body, &failure);
}
