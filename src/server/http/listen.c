/* listen.c - the socket that takes connections. Where the process has no file left for one, it
 * stops for a moment: the kernel would call it ready again and again. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "server/http/state.h"

enum { ACCEPTS_A_TURN = 64, BACKLOG = 1024 };
#define PAUSE_NS INT64_C(100000000)

static void set_option(int file, int level, int name, int value)
{
    (void)setsockopt(file, level, name, &value, sizeof value);
}

/* A client whose machine is gone is noticed within two minutes. */
static void set_up(int file)
{
    set_option(file, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(file, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(file, IPPROTO_TCP, TCP_KEEPIDLE, 60);
    set_option(file, IPPROTO_TCP, TCP_KEEPINTVL, 15);
    set_option(file, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

static void name_peer(const struct sockaddr_storage *address, socklen_t bytes,
                      char out[HTTP_MAX_PEER])
{
    if (getnameinfo((const struct sockaddr *)address, bytes, out, HTTP_MAX_PEER, NULL, 0,
                    NI_NUMERICHOST) != 0) {
        out[0] = 0;
    }
}

static void pause_listening(http_server *self)
{
    (void)event_del(&self->listen_event);
    self->listen_again_ns = mlai_now_ns() + PAUSE_NS;
}

/* false: no more for now. */
static bool take_one(http_server *self)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    int file = accept4(self->listen_file, (struct sockaddr *)&address, &bytes,
                       SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_listening(self);
        }
        return errno == EINTR || errno == ECONNABORTED || errno == EPROTO;
    }
    if (self->num_connections >= self->options.max_connections + HTTP_EXTRA_CONNECTIONS) {
        api_count(&self->options.counts->connections_refused, 1);
        (void)close(file);
        return true;
    }
    set_up(file);
    http_connection *connection = http_connection_open(self, file);
    if (connection) {
        name_peer(&address, bytes, connection->peer);
    }
    return true;
}

static void note_clients(evutil_socket_t file, short what, void *user)
{
    http_server *self = user;
    (void)file;
    (void)what;
    for (int i = 0; i < ACCEPTS_A_TURN && take_one(self); i++) {
    }
}

void http_listen_again(http_server *self, int64_t now_ns)
{
    if (self->listen_again_ns != 0 && now_ns >= self->listen_again_ns &&
        event_add(&self->listen_event, NULL) == 0) {
        self->listen_again_ns = 0;
    }
}

static int bind_one(const struct addrinfo *at)
{
    int file = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                      at->ai_protocol);
    if (file < 0) {
        return -1;
    }
    set_option(file, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind(file, at->ai_addr, at->ai_addrlen) != 0 || listen(file, BACKLOG) != 0) {
        int number = errno;
        (void)close(file);
        errno = number;
        return -1;
    }
    return file;
}

/* The port is at the same place in an IPv4 and an IPv6 address. */
static int32_t port_of(int file)
{
    struct sockaddr_in6 address = {0};
    socklen_t bytes = sizeof address;
    (void)getsockname(file, (struct sockaddr *)&address, &bytes);
    return ntohs(address.sin6_port);
}

static mla_status bind_any(http_server *self, mla_error *err)
{
    const http_options *options = &self->options;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[16];
    int error_number = 0;
    (void)snprintf(port, sizeof port, "%d", (int)options->port);
    int failure = getaddrinfo(options->host, port, &wanted, &found);
    MLAI_CHECK(failure == 0, MLA_ERR_ARGUMENT, "the host '%s' cannot be found: %s",
               options->host, gai_strerror(failure));
    for (struct addrinfo *at = found; at && self->listen_file < 0; at = at->ai_next) {
        self->listen_file = bind_one(at);
        error_number = errno;
    }
    freeaddrinfo(found);
    if (self->listen_file < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, error_number, MLAI_HERE,
                               "cannot listen at %s, port %d", options->host,
                               (int)options->port);
    }
    return MLA_OK;
}

mla_status http_listen(http_server *self, mla_error *err)
{
    if (!self->options.host) {
        return MLA_OK;
    }
    MLAI_TRY(bind_any(self, err));
    self->port = port_of(self->listen_file);
    MLAI_CHECK(event_assign(&self->listen_event, self->loop->base, self->listen_file,
                            EV_READ | EV_PERSIST, note_clients, self) == 0 &&
                   event_add(&self->listen_event, NULL) == 0,
               MLA_ERR_NO_MEMORY, "the server's event loop cannot watch its socket");
    return MLA_OK;
}

void http_listen_end(http_server *self)
{
    if (event_initialized(&self->listen_event)) {
        (void)event_del(&self->listen_event);
    }
    if (self->listen_file >= 0) {
        (void)close(self->listen_file);
        self->listen_file = -1;
    }
}
