/* client.c - sockets and poll: see client.h. */
#include "cli/client.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

enum { PIECE_BYTES = 65536 };

client_call client_call_none(mla_context *context)
{
    return (client_call){.out = {.context = context},
                         .in = {.context = context},
                         .body = {.context = context},
                         .file = -1,
                         .is_done = true};
}

mla_status client_append(byte_buffer *to, const void *data, size_t bytes, mla_error *err)
{
    MLAI_TRY(byte_buffer_reserve(to, bytes, err));
    if (bytes > 0) {
        memcpy(to->data + to->num, data, bytes);
    }
    to->num += bytes;
    return MLA_OK;
}

/* "[::1]:8000" -> "::1" and "8000". */
static bool split(const char *text, char *host, const char **port)
{
    const char *colon = strrchr(text, ':');
    bool is_long = text[0] == '[' && colon && colon > text && colon[-1] == ']';
    if (!colon || colon == text || strlen(text) >= CLIENT_TEXT) {
        return false;
    }
    const char *begin = text + is_long;
    (void)snprintf(host, CLIENT_TEXT, "%.*s", (int)(colon - is_long - begin), begin);
    *port = colon + 1;
    return true;
}

mla_status client_address_of(const char *url, client_address *out, mla_error *err)
{
    static const char scheme[] = "http://";
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char text[CLIENT_TEXT];
    char host[CLIENT_TEXT];
    const char *port = NULL;
    bool is_http = strncmp(url, scheme, sizeof scheme - 1) == 0;
    (void)snprintf(text, sizeof text, "%s", is_http ? url + sizeof scheme - 1 : "");
    text[strcspn(text, "/")] = '\0';
    MLAI_CHECK(split(text, host, &port), MLA_ERR_ARGUMENT, "'%s' is not http://HOST:PORT",
               url);
    int failure = getaddrinfo(host, port, &hints, &found);
    MLAI_CHECK(failure == 0, MLA_ERR_ARGUMENT, "'%s' is no address: %s", url,
               gai_strerror(failure));
    memcpy(&out->where, found->ai_addr, found->ai_addrlen);
    out->where_bytes = found->ai_addrlen;
    (void)snprintf(out->host, sizeof out->host, "%s", text);
    freeaddrinfo(found);
    return MLA_OK;
}

void client_call_finish(client_call *call, const char *why)
{
    if (call->file >= 0) {
        (void)close(call->file);
        call->file = -1;
    }
    call->is_done = true;
    call->end_ns = mlai_now_ns();
    if (why) {
        (void)snprintf(call->failure, sizeof call->failure, "%s", why);
    }
}

void client_call_end(client_call *call)
{
    if (call->file >= 0) {
        (void)close(call->file);
    }
    byte_buffer_free(&call->out);
    byte_buffer_free(&call->in);
    byte_buffer_free(&call->body);
    *call = client_call_none(call->out.context);
}

static mla_status write_request(client_call *call, const client_address *to,
                                const char *path, const char *body, mla_error *err)
{
    char head[2 * CLIENT_TEXT + 128];
    size_t body_bytes = body ? strlen(body) : 0;
    int length = snprintf(head, sizeof head, "%s %.100s HTTP/1.1\r\nHost: %s\r\n",
                          body ? "POST" : "GET", path, to->host);
    MLAI_TRY(client_append(&call->out, head, (size_t)length, err));
    if (body) {
        length = snprintf(head, sizeof head,
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                          body_bytes);
        MLAI_TRY(client_append(&call->out, head, (size_t)length, err));
    }
    static const char last[] = "Connection: close\r\n\r\n";
    MLAI_TRY(client_append(&call->out, last, sizeof last - 1, err));
    return client_append(&call->out, body, body_bytes, err);
}

mla_status client_call_begin(client_call *call, const client_address *to, const char *path,
                             const char *body, mla_error *err)
{
    client_call_end(call);
    MLAI_TRY(write_request(call, to, path, body, err));
    call->begin_ns = mlai_now_ns();
    call->is_done = false;
    call->file = socket(to->where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (call->file < 0 ||
        (connect(call->file, (const struct sockaddr *)&to->where, to->where_bytes) != 0 &&
         errno != EINPROGRESS)) {
        client_call_finish(call, strerror(errno));
    }
    return MLA_OK;
}

static void send_more(client_call *call)
{
    while (call->num_sent < call->out.num) {
        ssize_t sent = send(call->file, call->out.data + call->num_sent,
                            call->out.num - call->num_sent, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                client_call_finish(call, strerror(errno));
            }
            return;
        }
        call->num_sent += (size_t)sent;
    }
}

static mla_status receive_more(client_call *call, mla_error *err)
{
    while (!call->is_done) {
        MLAI_TRY(byte_buffer_reserve(&call->in, PIECE_BYTES, err));
        ssize_t got = recv(call->file, call->in.data + call->in.num, PIECE_BYTES, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            return MLA_OK;
        }
        if (got < 0) {
            client_call_finish(call, strerror(errno));
            return MLA_OK;
        }
        call->in.num += (size_t)got;
        MLAI_TRY(client_reply_take(call, got == 0, err));
    }
    return MLA_OK;
}

static mla_status serve_ready(client_call *call, short events, mla_error *err)
{
    if (events & POLLOUT) {
        send_more(call);
    }
    if (!call->is_done && (events & (POLLIN | POLLHUP | POLLERR))) {
        return receive_more(call, err);
    }
    return MLA_OK;
}

mla_status client_poll(client_call *const *calls, int32_t num, int wait_ms, mla_error *err)
{
    static struct pollfd files[CLIENT_MAX_CALLS];
    MLAI_CHECK(num <= CLIENT_MAX_CALLS, MLA_ERR_ARGUMENT, "%d calls at once; %d at most",
               num, CLIENT_MAX_CALLS);
    for (int32_t i = 0; i < num; i++) { /* poll leaves a file of -1 alone */
        bool is_sent = calls[i]->num_sent == calls[i]->out.num;
        files[i].fd = calls[i]->file;
        files[i].events = (short)(is_sent ? POLLIN : POLLIN | POLLOUT);
        files[i].revents = 0;
    }
    if (poll(files, (nfds_t)num, wait_ms) <= 0) {
        return MLA_OK;
    }
    for (int32_t i = 0; i < num; i++) {
        if (files[i].fd >= 0) {
            MLAI_TRY(serve_ready(calls[i], files[i].revents, err));
        }
    }
    return MLA_OK;
}
