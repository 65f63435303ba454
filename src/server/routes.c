/* routes.c - which request goes where, and who may ask. */
#include <stdio.h>
#include <string.h>

#include "server/state.h"

typedef void (*route_get)(server *self, http_request *request);

typedef struct route {
    const char *path;
    route_get get; /* NULL: POST */
    exchange_kind post;
    bool is_prefix; /* of longer paths */
    bool is_open;   /* without a key, too */
} route;

static const route routes[] = {
    {.path = "/", .get = server_say_page, .is_open = true},
    {.path = "/health", .get = server_say_health, .is_open = true},
    {.path = "/ping", .get = server_say_health, .is_open = true},
    {.path = "/ready", .get = server_say_health, .is_open = true},
    {.path = "/metrics", .get = server_say_metrics, .is_open = true},
    {.path = "/version", .get = server_say_version},
    {.path = "/ledger", .get = server_say_ledger},
    {.path = "/v1/models", .get = server_say_models},
    {.path = "/v1/models/", .get = server_say_models, .is_prefix = true},
    {.path = "/v1/chat/completions", .post = EXCHANGE_CHAT},
    {.path = "/v1/completions", .post = EXCHANGE_COMPLETION},
    {.path = "/tokenize", .post = EXCHANGE_TOKENIZE},
    {.path = "/detokenize", .post = EXCHANGE_DETOKENIZE},
};
enum { NUM_ROUTES = sizeof routes / sizeof routes[0] };

static const route *find(const char *path)
{
    for (int i = 0; i < NUM_ROUTES; i++) {
        const route *at = &routes[i];
        if (at->is_prefix ? strncmp(path, at->path, strlen(at->path)) == 0
                          : strcmp(path, at->path) == 0) {
            return at;
        }
    }
    return NULL;
}

static void log_request(server *self, const http_request *request, int status)
{
    const http_head *head = http_request_head(request);
    const access_entry entry = {.peer = http_request_peer(request),
                                .method = head->method,
                                .path = head->path,
                                .status = status,
                                .note = ""};
    access_log_write(&self->log, &entry);
}

void server_reply(server *self, http_request *request, const http_answer *answer)
{
    log_request(self, request, answer->status);
    http_reply(request, answer);
}

static void reply_failure_with(server *self, http_request *request,
                               const api_failure *failure, const char *fields)
{
    char *body = self->text;
    const http_answer answer = {.status = (int)failure->status,
                                .type = "application/json",
                                .fields = fields,
                                .body = body,
                                .bytes = api_failure_print(failure, body)};
    server_reply(self, request, &answer);
}

void server_reply_failure(server *self, http_request *request, const api_failure *failure)
{
    bool is_later = failure->status == API_TOO_MANY || failure->status == API_UNAVAILABLE;
    reply_failure_with(self, request, failure, is_later ? "Retry-After: 1\r\n" : NULL);
}

/* What a browser asks before it lets a page of another origin ask. */
static void say_options(server *self, http_request *request)
{
    char fields[HTTP_MAX_ASKED + 256];
    const http_head *head = http_request_head(request);
    const char *asked =
        head->asked_headers[0] ? head->asked_headers : "Authorization, Content-Type";
    (void)snprintf(fields, sizeof fields,
                   "Allow: GET, HEAD, POST, OPTIONS\r\n"
                   "Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n"
                   "Access-Control-Allow-Headers: %s\r\n"
                   "Access-Control-Max-Age: 86400\r\n",
                   asked);
    const http_answer answer = {.status = 204, .fields = fields};
    server_reply(self, request, &answer);
}

static void refuse_method(server *self, http_request *request, const route *to)
{
    api_failure failure;
    const http_head *head = http_request_head(request);
    (void)api_fail(&failure, API_WRONG_METHOD, NULL, NULL, "%s is not for %s", to->path,
                   head->method);
    reply_failure_with(self, request, &failure,
                       to->get ? "Allow: GET, HEAD, OPTIONS\r\n"
                               : "Allow: POST, OPTIONS\r\n");
}

static bool may_ask(const server *self, const http_request *request, const route *to)
{
    return to->is_open || !self->options.keys ||
           api_keys_allow(self->options.keys, http_request_head(request)->authorization);
}

/* Those that the worker has, and those that wait for a place in the engine. */
static int64_t num_waiting(const server *self)
{
    engine_stats stats;
    engine_stats_take(self->options.engine, &stats);
    return (int64_t)self->num_queued + stats.num_waiting;
}

static bool is_taken(server *self, api_failure *failure)
{
    if (atomic_load(&self->engine.is_dead)) {
        return api_fail(failure, API_UNAVAILABLE, NULL, "engine_failed",
                        "the engine has failed");
    }
    if (server_is_draining(self)) {
        return api_fail(failure, API_UNAVAILABLE, NULL, "shutting_down",
                        "the server is shutting down");
    }
    int64_t waiting = num_waiting(self);
    if (waiting >= self->options.max_waiting) {
        return api_fail(failure, API_TOO_MANY, NULL, "queue_full",
                        "%lld requests wait already, which is the most that may",
                        (long long)waiting);
    }
    return true;
}

static void post(server *self, http_request *request, const route *to)
{
    api_failure failure;
    if (is_taken(self, &failure)) {
        exchange_begin(self, request, to->post);
    } else {
        server_reply_failure(self, request, &failure);
    }
}

static void refuse_path(server *self, http_request *request)
{
    api_failure failure;
    const http_head *head = http_request_head(request);
    (void)api_fail(&failure, API_NOT_FOUND, NULL, NULL, "there is no %.200s here",
                   head->path);
    server_reply_failure(self, request, &failure);
}

static void refuse_key(server *self, http_request *request)
{
    api_failure failure;
    (void)api_fail(&failure, API_UNAUTHORIZED, NULL, "invalid_api_key",
                   "an API key is needed: Authorization: Bearer KEY");
    reply_failure_with(self, request, &failure, "WWW-Authenticate: Bearer\r\n");
}

void server_route(server *self, http_request *request)
{
    const http_head *head = http_request_head(request);
    const route *to = find(head->path);
    bool is_get = strcmp(head->method, "GET") == 0 || strcmp(head->method, "HEAD") == 0;
    bool is_post = strcmp(head->method, "POST") == 0;
    if (strcmp(head->method, "OPTIONS") == 0) {
        say_options(self, request);
    } else if (!to) {
        refuse_path(self, request);
    } else if (to->get ? !is_get : !is_post) {
        refuse_method(self, request, to);
    } else if (!may_ask(self, request, to)) {
        refuse_key(self, request);
    } else if (to->get) {
        to->get(self, request);
    } else {
        post(self, request, to);
    }
}
