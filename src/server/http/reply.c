/* reply.c - what goes out: whole replies, streams, refusals, and how much of them may wait for
 * a client that does not read. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "server/http/state.h"

bool http_flush(http_connection *self)
{
    api_transport *counts = self->server->options.counts;
    int64_t wait_ns = self->server->options.write_timeout_ns;
    bool has_sent = false;
    while (evbuffer_get_length(self->out) > 0) {
        int sent = evbuffer_write(self->out, self->file);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return false;
        }
        if (sent <= 0) {
            break;
        }
        has_sent = true;
        api_count(&counts->bytes_out, (uint64_t)sent);
    }
    if (self->phase == HTTP_REPLY) {
        bool is_waiting = evbuffer_get_length(self->out) > 0;
        bool is_late = is_waiting && !has_sent && self->deadline_ns != 0;
        self->deadline_ns = !is_waiting ? 0
                            : is_late   ? self->deadline_ns
                                        : mlai_now_ns() + wait_ns;
    }
    return true;
}

static void add_date(struct evbuffer *out)
{
    char text[64];
    struct tm parts;
    time_t now = time(NULL);
    if (gmtime_r(&now, &parts) &&
        strftime(text, sizeof text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts) > 0) {
        (void)evbuffer_add(out, text, strlen(text));
    }
}

static void add_origin(const http_connection *self)
{
    const char *origin = self->server->options.cors_origin;
    if (origin) {
        (void)evbuffer_add_printf(self->out, "Access-Control-Allow-Origin: %s\r\n", origin);
    }
}

/* The frame: how its end is told. */
static void add_frame(http_connection *self, const http_answer *answer, bool is_stream)
{
    const http_request *request = self->request;
    bool is_chunked = is_stream && request && !request->head.is_old;
    self->is_last = self->is_last || !request || !request->head.keeps_alive ||
                    self->server->is_draining || (is_stream && !is_chunked);
    if (is_chunked) {
        (void)evbuffer_add_printf(self->out, "Transfer-Encoding: chunked\r\n");
    } else if (!is_stream && answer->status != 204) {
        (void)evbuffer_add_printf(self->out, "Content-Length: %zu\r\n", answer->bytes);
    }
    (void)evbuffer_add_printf(self->out, "Connection: %s\r\n",
                              self->is_last ? "close" : "keep-alive");
}

static void add_head(http_connection *self, const http_answer *answer, bool is_stream)
{
    (void)evbuffer_add_printf(self->out, "HTTP/1.1 %d %s\r\n", answer->status,
                              http_status_words(answer->status));
    add_date(self->out);
    if (answer->type) {
        (void)evbuffer_add_printf(self->out, "Content-Type: %s\r\n", answer->type);
    }
    add_frame(self, answer, is_stream);
    add_origin(self);
    if (answer->fields) {
        (void)evbuffer_add_printf(self->out, "%s", answer->fields);
    }
    if (evbuffer_add(self->out, "\r\n", 2) != 0) {
        self->is_broken = true; /* no memory: the reply cannot be told */
    }
}

static void add_body(http_connection *self, const http_answer *answer)
{
    bool is_told = !self->request || strcmp(self->request->head.method, "HEAD") != 0;
    if (is_told && answer->bytes > 0 &&
        evbuffer_add(self->out, answer->body, answer->bytes) != 0) {
        self->is_broken = true;
    }
}

/* The reply is complete, though not wholly sent. */
static void finish(http_connection *self)
{
    http_request_free(self);
    self->phase = HTTP_REPLY;
    self->is_broken = self->is_broken || !http_flush(self);
    http_connection_again(self);
}

static void count_reply(http_connection *self, int status)
{
    api_count(&self->server->options.counts->replies[status], 1);
}

void http_reply(http_request *request, const http_answer *answer)
{
    http_connection *self = request->connection;
    add_head(self, answer, false);
    add_body(self, answer);
    count_reply(self, answer->status);
    finish(self);
}

void http_refuse(http_connection *self, int status, const char *text)
{
    const http_options *options = &self->server->options;
    char *body = self->server->text;
    api_failure failure;
    (void)api_fail(&failure, (api_status)status, NULL, NULL, "%s", text);
    const http_answer answer = {.status = status,
                                .type = "application/json",
                                .fields = status == 503 ? "Retry-After: 1\r\n" : NULL,
                                .body = body,
                                .bytes = api_failure_print(&failure, body)};
    options->on_refusal(options->user, self->peer, status, text);
    self->is_last = true;
    add_head(self, &answer, false);
    add_body(self, &answer);
    count_reply(self, status);
    finish(self);
}

void http_reply_begin(http_request *request, const http_answer *answer)
{
    http_connection *self = request->connection;
    request->is_stream = true;
    add_head(self, answer, true);
    count_reply(self, answer->status);
    (void)http_reply_add(request, answer->body, answer->bytes);
}

static bool break_off(http_connection *self)
{
    self->is_broken = true;
    http_connection_again(self);
    return false;
}

bool http_reply_add(http_request *request, const char *data, size_t bytes)
{
    http_connection *self = request->connection;
    bool is_chunked = !request->head.is_old;
    if (bytes > 0 &&
        ((is_chunked && evbuffer_add_printf(self->out, "%zx\r\n", bytes) < 0) ||
         evbuffer_add(self->out, data, bytes) != 0 ||
         (is_chunked && evbuffer_add(self->out, "\r\n", 2) != 0))) {
        return break_off(self);
    }
    if (self->is_broken || !http_flush(self)) {
        return break_off(self);
    }
    if (evbuffer_get_length(self->out) > self->server->options.max_unsent_bytes) {
        api_count(&self->server->options.counts->slow_readers, 1);
        return break_off(self);
    }
    return true;
}

void http_reply_end(http_request *request)
{
    static const char last[] = "0\r\n\r\n";
    http_connection *self = request->connection;
    if (!request->head.is_old && evbuffer_add(self->out, last, sizeof last - 1) != 0) {
        self->is_broken = true;
    }
    finish(self);
}

void http_reply_break(http_request *request)
{
    http_connection *self = request->connection;
    http_request_free(self);
    (void)break_off(self);
}
