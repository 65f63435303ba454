/* The whole server, threads and all, on the demo model: it answers over the network, drains at a
 * signal, and where the engine fails in the middle of its work every client is told, plain or
 * streamed, and the server ends with the engine's error. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/status.h"
#include "server/server.h"
#include "support/api_rig.h"
#include "support/must.h"

#define SECOND_NS INT64_C(1000000000)

static api_rig rig;
static char text[1 << 18];
static atomic_int steps_left; /* then the model fails; below 0: never */

/* The linker's names for the model's function and for this one. */
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
mla_status __real_model_decode(model *self, const model_step *step, mla_error *err);
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
mla_status __wrap_model_decode(model *self, const model_step *step, mla_error *err);
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
mla_status __wrap_model_decode(model *self, const model_step *step, mla_error *err)
{
    if (atomic_load(&steps_left) >= 0 && atomic_fetch_sub(&steps_left, 1) <= 0) {
        atomic_store(&steps_left, 0);
        return MLAI_FAIL(MLA_ERR_DEVICE, "the device has left");
    }
    return __real_model_decode(self, step, err);
}

typedef struct served {
    server *server;
    pthread_t thread;
    mla_status status;
    mla_error error;
    int signal_number;
} served;

static void *run(void *user)
{
    served *self = user;
    self->status = server_run(self->server, &self->signal_number, &self->error);
    return NULL;
}

static void begin(served *self)
{
    const api_rig_options options = {.max_context_tokens = 1024};
    api_rig_open(&rig, &options);
    const server_options wanted = {.engine = rig.settings.engine,
                                   .ledger = rig.settings.ledger,
                                   .model_name = "demo",
                                   .version = "0",
                                   .defaults = rig.settings.defaults,
                                   .host = "127.0.0.1",
                                   .max_connections = 16,
                                   .max_waiting = 16,
                                   .max_body_bytes = 1 << 20,
                                   .max_server_bytes = 64 << 20,
                                   .read_timeout_ns = 30 * SECOND_NS,
                                   .write_timeout_ns = 30 * SECOND_NS,
                                   .idle_timeout_ns = 30 * SECOND_NS,
                                   .comment_interval_ns = SECOND_NS,
                                   .shutdown_timeout_ns = 30 * SECOND_NS,
                                   .log_file = -1};
    *self = (served){0};
    must(mla_context_freeze(rig.context, &self->error), &self->error);
    must(server_open(&wanted, &self->server, &self->error), &self->error);
    assert_int_equal(pthread_create(&self->thread, NULL, run, self), 0);
}

static void end(served *self)
{
    assert_int_equal(pthread_join(self->thread, NULL), 0);
    assert_int_equal(self->signal_number, 0);
    server_close(&self->server);
    api_rig_check(&rig);
    api_rig_close(&rig);
}

static int ask(const served *self, const char *request)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server_port(self->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(file >= 0);
    assert_int_equal(connect(file, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(file, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return file;
}

static const char *rest_of(int file)
{
    size_t num = 0;
    ssize_t got = 0;
    while ((got = recv(file, text + num, sizeof text - 1 - num, 0)) > 0) {
        num += (size_t)got;
    }
    text[num] = 0;
    (void)close(file);
    return text;
}

/* A completion of 500 tokens. */
static int ask_for_much(const served *self, bool is_stream)
{
    char body[128];
    char request[512];
    (void)snprintf(
        body, sizeof body,
        "{\"prompt\":\"The\",\"max_tokens\":500,\"ignore_eos\":true,\"stream\":%s}",
        is_stream ? "true" : "false");
    (void)snprintf(request, sizeof request,
                   "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   strlen(body), body);
    return ask(self, request);
}

static void a_signal_lets_what_runs_end(void **state)
{
    (void)state;
    served self;
    atomic_store(&steps_left, -1);
    begin(&self);
    int stream = ask_for_much(&self, true);
    assert_int_equal(recv(stream, text, 1, MSG_PEEK), 1);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_non_null(strstr(rest_of(stream), "\"finish_reason\":\"length\""));
    end(&self);
    assert_int_equal(self.status, MLA_OK);
}

static void an_engine_that_fails_tells_everybody(void **state)
{
    (void)state;
    served self;
    atomic_store(&steps_left, 40);
    begin(&self);
    int stream = ask_for_much(&self, true);
    int plain = ask_for_much(&self, false);
    const char *streamed = rest_of(stream);
    assert_memory_equal(streamed, "HTTP/1.1 200 OK\r\n", 17);
    assert_non_null(strstr(streamed, "\"engine_failed\""));
    const char *refused = rest_of(plain);
    assert_memory_equal(refused, "HTTP/1.1 50",
                        11); /* 503 where it came after the failure */
    assert_non_null(strstr(refused, "\"engine_failed\""));
    end(&self);
    assert_int_equal(self.status, MLA_ERR_DEVICE);
    assert_string_equal(self.error.message, "the device has left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_lets_what_runs_end),
        cmocka_unit_test(an_engine_that_fails_tells_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
