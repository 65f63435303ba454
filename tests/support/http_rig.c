/* http_rig.c - HTTP over socket pairs: see http_rig.h. */
#include "support/http_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/books.h"

#define SECOND_NS INT64_C(1000000000)
enum { TURNS = 8 };

static void keep(http_rig *self, http_request *request)
{
    if (self->num_kept == HTTP_RIG_MAX_KEPT) {
        http_reply_break(request);
        return;
    }
    self->kept[self->num_kept++] = request;
}

static void answer(void *user, http_request *request)
{
    http_rig *self = user;
    const http_head *head = http_request_head(request);
    self->num_requests++;
    if (strcmp(head->path, "/keep") == 0) {
        keep(self, request);
    } else if (strcmp(head->path, "/stream") == 0) {
        const http_answer begin = {.status = 200, .type = "text/event-stream"};
        http_reply_begin(request, &begin);
        keep(self, request);
    } else {
        char text[32];
        byte_buffer body = http_request_take_body(request);
        (void)snprintf(text, sizeof text, "%zu bytes", body.num);
        const http_answer whole = {.status = strcmp(head->path, "/now") == 0 ? 200 : 404,
                                   .type = "text/plain",
                                   .body = text,
                                   .bytes = strlen(text)};
        http_reply(request, &whole);
        byte_buffer_free(&body);
    }
}

static void forget(void *user, http_request *request)
{
    http_rig *self = user;
    self->num_gone++;
    for (int i = 0; i < self->num_kept; i++) {
        if (self->kept[i] == request) {
            self->kept[i] = self->kept[--self->num_kept];
            return;
        }
    }
}

static void note_refusal(void *user, const char *peer, int status, const char *text)
{
    http_rig *self = user;
    (void)peer;
    (void)text;
    self->num_refused++;
    self->last_refusal = status;
}

static void ignore(void *user)
{
    (void)user;
}

bool http_rig_open(http_rig *self, const mla_allocator *allocator)
{
    *self = (http_rig){.books = books_open(allocator)};
    const http_options options = {.ledger = &self->books.ledger,
                                  .max_connections = 8,
                                  .max_head_bytes = 4096,
                                  .max_body_bytes = 65536,
                                  .max_unsent_bytes = 1 << 20,
                                  .max_server_bytes = 16 << 20,
                                  .read_timeout_ns = 60 * SECOND_NS,
                                  .write_timeout_ns = 60 * SECOND_NS,
                                  .idle_timeout_ns = 60 * SECOND_NS,
                                  .on_request = answer,
                                  .on_gone = forget,
                                  .on_tick = ignore,
                                  .on_refusal = note_refusal,
                                  .user = self,
                                  .counts = &self->counts};
    mla_error err = {0};
    if (loop_open(&self->loop, &self->books, 16 << 20, ignore, self, &err) != MLA_OK) {
        return false;
    }
    if (http_server_open(&self->loop, &options, &self->http, &err) != MLA_OK) {
        loop_close(&self->loop);
        return false;
    }
    self->server_bytes = books_now(&self->books);
    return true;
}

void http_rig_close(http_rig *self)
{
    http_server_close(&self->http);
    loop_close(&self->loop);
}

int http_rig_connect(http_rig *self)
{
    int pair[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        return -1;
    }
    http_server_adopt(self->http, pair[1]);
    return pair[0];
}

void http_rig_turn(http_rig *self)
{
    for (int i = 0; i < TURNS; i++) {
        (void)event_base_loop(self->loop.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    }
}

bool http_rig_is_clean(const http_rig *self)
{
    return books_now(&self->books) == self->server_bytes;
}

void http_rig_send(int file, const char *text)
{
    (void)!send(file, text, strlen(text), MSG_NOSIGNAL);
}

size_t http_rig_receive(int file, char *out, size_t room, bool *is_ended)
{
    size_t num = 0;
    ssize_t got = 0;
    while (num + 1 < room && (got = recv(file, out + num, room - 1 - num, 0)) > 0) {
        num += (size_t)got;
    }
    out[num] = 0;
    *is_ended = got == 0 || (got < 0 && errno != EAGAIN);
    return num;
}
