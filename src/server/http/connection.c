/* connection.c - the life of a connection: it reads a request, waits for its reply, sends it,
 * and begins again.
 *
 * Its one event is edge-triggered: what happened is told once, so every turn goes on until the
 * kernel says EAGAIN or a reply is awaited. A lone EV_CLOSED event would not do: libevent calls
 * a reset (EPOLLERR) readable and writable, never closed, and would spin. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "server/http/state.h"

#define LINGER_NS INT64_C(2000000000)

typedef enum turn { GO_ON, WAIT, GONE } turn;

static void unlink_connection(http_connection *self)
{
    http_server *server = self->server;
    if (self->previous) {
        self->previous->next = self->next;
    } else {
        server->connections = self->next;
    }
    if (self->next) {
        self->next->previous = self->previous;
    }
    server->num_connections--;
    api_uncount(&server->options.counts->connections_open, 1);
}

static void release(http_connection *self)
{
    if (event_initialized(&self->event)) {
        (void)event_del(&self->event);
    }
    (void)close(self->file);
    if (self->in) {
        evbuffer_free(self->in);
    }
    if (self->out) {
        evbuffer_free(self->out);
    }
    http_request_free(self);
    mla_memory_give(self->server->loop->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                    sizeof *self, self);
}

void http_connection_close(http_connection *self)
{
    const http_options *options = &self->server->options;
    if (self->request && self->phase == HTTP_REPLY) {
        api_count(&options->counts->disconnects, 1);
        options->on_gone(options->user, self->request);
    }
    unlink_connection(self);
    release(self);
}

/* A reset, a close and a half-close all say that nobody waits for the reply. */
static bool has_client_left(int file)
{
    struct pollfd asked = {.fd = file, .events = POLLRDHUP};
    return poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Not by evbuffer_read, which keeps memory where there is nothing to read. */
static turn fill(http_connection *self)
{
    http_server *server = self->server;
    ssize_t got = recv(self->file, server->block, sizeof server->block, 0);
    if (got > 0) {
        api_count(&server->options.counts->bytes_in, (uint64_t)got);
        return evbuffer_add(self->in, server->block, (size_t)got) == 0 ? GO_ON : GONE;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? WAIT : GONE;
}

static turn discard(http_connection *self)
{
    turn next = fill(self);
    (void)evbuffer_drain(self->in, evbuffer_get_length(self->in));
    return next;
}

static void begin_linger(http_connection *self)
{
    (void)shutdown(self->file, SHUT_WR);
    self->phase = HTTP_LINGER;
    self->deadline_ns = mlai_now_ns() + LINGER_NS;
}

static void begin_head(http_connection *self)
{
    self->phase = HTTP_HEAD;
    self->searched = 0;
    self->deadline_ns = mlai_now_ns() + self->server->options.idle_timeout_ns;
}

/* Requests may be sent ahead, but not without end: behind what the kernel has no room for, the
 * client's end of the connection would not be seen. From then on this reply is the last, and
 * what comes is thrown away. */
static turn await_reply(http_connection *self)
{
    int ahead = 0;
    if (has_client_left(self->file)) {
        return GONE;
    }
    self->is_flooded = self->is_flooded ||
                       (ioctl(self->file, FIONREAD, &ahead) == 0 && ahead > HTTP_MAX_AHEAD);
    self->is_last = self->is_last || self->is_flooded;
    return self->is_flooded ? discard(self) : WAIT;
}

static turn send_on(http_connection *self)
{
    if (!http_flush(self)) {
        return GONE;
    }
    if (self->request) {
        return await_reply(self);
    }
    if (evbuffer_get_length(self->out) > 0) {
        return WAIT;
    }
    if (self->is_last) {
        begin_linger(self);
    } else {
        begin_head(self);
    }
    return GO_ON;
}

static turn take_turn(http_connection *self)
{
    if (self->is_broken) {
        return GONE;
    }
    switch (self->phase) {
    case HTTP_HEAD:
        return http_read_head(self) ? GO_ON : fill(self);
    case HTTP_BODY:
        return http_read_body(self) ? GO_ON : fill(self);
    case HTTP_REPLY:
        return send_on(self);
    case HTTP_LINGER:
    default:
        return discard(self);
    }
}

static void run(http_connection *self)
{
    turn next = GO_ON;
    self->is_running = true;
    for (int i = 0; i < HTTP_READS_A_TURN && next == GO_ON; i++) {
        next = take_turn(self);
    }
    self->is_running = false;
    if (next == GONE) {
        http_connection_close(self);
    } else if (next == GO_ON) {
        http_connection_again(self);
    }
}

static void note_event(evutil_socket_t file, short what, void *user)
{
    (void)file;
    (void)what;
    run(user);
}

void http_connection_again(http_connection *self)
{
    if (!self->is_running) {
        event_active(&self->event, EV_WRITE, 0);
    }
}

static void link_connection(http_connection *self)
{
    http_server *server = self->server;
    self->next = server->connections;
    if (self->next) {
        self->next->previous = self;
    }
    server->connections = self;
    self->is_refused = server->num_connections >= server->options.max_connections;
    server->num_connections++;
    api_count(&server->options.counts->connections, 1);
    api_count(&server->options.counts->connections_open, 1);
}

http_connection *http_connection_open(http_server *server, int file)
{
    void *taken = NULL;
    if (mla_memory_take(server->loop->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                        sizeof(http_connection), _Alignof(http_connection), &taken,
                        NULL) != MLA_OK) {
        (void)close(file);
        return NULL;
    }
    http_connection *self = taken;
    *self = (http_connection){.server = server, .file = file};
    self->in = evbuffer_new();
    self->out = evbuffer_new();
    if (!self->in || !self->out ||
        event_assign(&self->event, server->loop->base, file,
                     EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST, note_event,
                     self) != 0 ||
        event_add(&self->event, NULL) != 0) {
        release(self);
        return NULL;
    }
    begin_head(self);
    link_connection(self);
    return self;
}

void http_connection_check_time(http_connection *self, int64_t now_ns)
{
    bool has_begun = self->phase == HTTP_BODY ||
                     (self->phase == HTTP_HEAD && evbuffer_get_length(self->in) > 0);
    if (self->deadline_ns == 0 || now_ns < self->deadline_ns) {
        return;
    }
    if (has_begun) {
        http_refuse(self, API_TIMED_OUT, "the request did not come in time");
        run(self);
        return;
    }
    if (self->phase == HTTP_REPLY) {
        api_count(&self->server->options.counts->slow_readers, 1);
    }
    http_connection_close(self);
}
