/* server.c - opening, the clock's ticks, draining and closing: see http.h. */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "server/http/state.h"

enum { TICK_MICROSECONDS = 100000 };
#define LATE_NS (INT64_C(3000) * TICK_MICROSECONDS)

/* After a while in which nothing ran (the process was stopped, its machine was asleep), what
 * came meanwhile is read before anybody is too late: the tick may come before it. */
static bool may_judge(http_server *self, int64_t now_ns)
{
    bool is_late = now_ns - self->tick_ns >= LATE_NS;
    bool is_first = is_late && !self->was_late;
    self->tick_ns = now_ns;
    self->was_late = is_late;
    return !is_first;
}

static void check_times(http_server *self, int64_t now_ns)
{
    http_connection *next = NULL;
    for (http_connection *at = self->connections; at; at = next) {
        next = at->next;
        http_connection_check_time(at, now_ns);
    }
}

static void note_tick(evutil_socket_t file, short what, void *user)
{
    http_server *self = user;
    int64_t now_ns = mlai_now_ns();
    (void)file;
    (void)what;
    if (may_judge(self, now_ns)) {
        check_times(self, now_ns);
    }
    http_listen_again(self, now_ns);
    self->options.on_tick(self->options.user);
}

static mla_status start(http_server *self, mla_error *err)
{
    const struct timeval every = {.tv_usec = TICK_MICROSECONDS};
    MLAI_CHECK(event_assign(&self->tick_event, self->loop->base, -1, EV_PERSIST, note_tick,
                            self) == 0 &&
                   event_add(&self->tick_event, &every) == 0,
               MLA_ERR_NO_MEMORY, "the server's event loop has no room for its clock");
    loop_warm(self->loop, self->options.max_connections + HTTP_EXTRA_CONNECTIONS);
    return http_listen(self, err);
}

mla_status http_server_open(loop *on, const http_options *options, http_server **out,
                            mla_error *err)
{
    void *taken = NULL;
    MLAI_TRY(mla_memory_take(on->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                             sizeof(http_server), _Alignof(http_server), &taken, err));
    http_server *self = taken;
    *self = (http_server){.loop = on, .options = *options, .listen_file = -1};
    mla_status status = start(self, err);
    if (status != MLA_OK) {
        http_server_close(&self);
        return status;
    }
    *out = self;
    return MLA_OK;
}

void http_server_close(http_server **server)
{
    http_server *self = *server;
    if (!self) {
        return;
    }
    while (self->connections) {
        http_connection_close(self->connections);
    }
    http_listen_end(self);
    if (event_initialized(&self->tick_event)) {
        (void)event_del(&self->tick_event);
    }
    mla_memory_give(self->loop->context, MLA_SPACE_HOST, MLA_FOR_SERVER, sizeof *self,
                    self);
    *server = NULL;
}

int32_t http_server_port(const http_server *server)
{
    return server->port;
}

int32_t http_server_num_connections(const http_server *server)
{
    return server->num_connections;
}

bool http_server_is_busy(const http_server *server)
{
    for (const http_connection *at = server->connections; at; at = at->next) {
        if (at->phase == HTTP_REPLY) {
            return true;
        }
    }
    return false;
}

void http_server_drain(http_server *server)
{
    server->is_draining = true;
}

void http_server_adopt(http_server *server, int file)
{
    (void)http_connection_open(server, file);
}

const http_head *http_request_head(const http_request *request)
{
    return &request->head;
}

const char *http_request_peer(const http_request *request)
{
    return request->connection->peer;
}

byte_buffer http_request_take_body(http_request *request)
{
    byte_buffer body = request->body;
    request->body = (byte_buffer){.context = body.context};
    return body;
}

void http_request_set_user(http_request *request, void *user)
{
    request->user = user;
}

void *http_request_user(const http_request *request)
{
    return request->user;
}
