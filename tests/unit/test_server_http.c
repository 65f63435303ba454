/* A connection from its first byte to its last, without a network: replies at once and later,
 * requests sent ahead, clients that leave, and every allocation failing. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fault.h"
#include "support/http_rig.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"

static http_rig rig;
static char text[1 << 16];

static int open_rig(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    return http_rig_open(&rig, NULL) ? 0 : -1;
}

static int close_rig(void **state)
{
    (void)state;
    bool is_clean = http_rig_is_clean(&rig);
    http_rig_close(&rig);
    return is_clean && rig.books.ledger.space_now_bytes[MLA_SPACE_HOST] == 0 ? 0 : -1;
}

static const char *talk(int file, const char *request, bool *is_ended)
{
    http_rig_send(file, request);
    http_rig_turn(&rig);
    (void)http_rig_receive(file, text, sizeof text, is_ended);
    return text;
}

static void leave(int file)
{
    (void)close(file);
    http_rig_turn(&rig);
}

static void reply_kept(const char *body)
{
    const http_answer answer = {
        .status = 200, .type = "text/plain", .body = body, .bytes = strlen(body)};
    assert_true(rig.num_kept > 0);
    http_reply(rig.kept[--rig.num_kept], &answer);
    http_rig_turn(&rig);
}

static void a_request_is_answered_and_its_connection_kept(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    for (int i = 0; i < 3; i++) {
        const char *reply = talk(file, GET("/now"), &is_ended);
        assert_memory_equal(reply, "HTTP/1.1 200 OK\r\n", 17);
        assert_non_null(strstr(reply, "\r\nContent-Length: 7\r\n"));
        assert_string_equal(reply + strlen(reply) - 11, "\r\n\r\n0 bytes");
        assert_false(is_ended);
    }
    leave(file);
    assert_int_equal(rig.counts.connections_open, 0);
    assert_int_equal(rig.counts.disconnects, 0);
}

static void what_is_sent_ahead_waits_for_the_reply(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    assert_string_equal(talk(file, GET("/keep") GET("/keep") GET("/now"), &is_ended), "");
    assert_int_equal(rig.num_requests, 1);
    reply_kept("one");
    assert_int_equal(rig.num_requests, 2);
    reply_kept("two");
    assert_int_equal(rig.num_requests, 3);
    (void)http_rig_receive(file, text, sizeof text, &is_ended);
    const char *one = strstr(text, "\r\n\r\none");
    const char *two = strstr(text, "\r\n\r\ntwo");
    const char *now = strstr(text, "\r\n\r\n0 bytes");
    assert_true(one && two && now && one < two && two < now);
    leave(file);
}

static void a_stream_comes_in_chunks_as_it_is_written(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    const char *head = talk(file, GET("/stream"), &is_ended);
    assert_non_null(strstr(head, "\r\nTransfer-Encoding: chunked\r\n"));
    http_request *request = rig.kept[--rig.num_kept];
    assert_true(http_reply_add(request, "hello", 5));
    (void)http_rig_receive(file, text, sizeof text, &is_ended);
    assert_string_equal(text, "5\r\nhello\r\n");
    http_reply_end(request);
    assert_string_equal(talk(file, "", &is_ended), "0\r\n\r\n");
    assert_false(is_ended);
    leave(file);
}

static void a_client_that_leaves_is_noticed_once(void **state)
{
    (void)state;
    static const char *const requests[] = {
        GET("/keep"), GET("/stream"), GET("/keep") GET("/now"), GET("/stream") GET("/now")};
    for (int i = 0; i < 8; i++) {
        bool is_ended = false;
        int file = http_rig_connect(&rig);
        (void)talk(file, requests[i / 2], &is_ended);
        assert_int_equal(rig.num_kept, 1);
        if (i % 2) {
            assert_int_equal(shutdown(file, SHUT_WR), 0);
            http_rig_turn(&rig);
        } else {
            leave(file);
        }
        assert_int_equal(rig.num_gone, i + 1);
        assert_int_equal(rig.num_kept, 0);
        assert_int_equal(rig.counts.connections_open, 0);
        if (i % 2) {
            leave(file);
        }
    }
    assert_int_equal(rig.num_requests, 8); /* what was sent ahead is not answered */
}

/* Its half-close is already there when the request is read. */
static void a_client_that_half_closes_at_once_is_noticed(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    http_rig_send(file, GET("/keep"));
    assert_int_equal(shutdown(file, SHUT_WR), 0);
    http_rig_turn(&rig);
    assert_int_equal(rig.num_gone, 1);
    leave(file);
    file = http_rig_connect(&rig);
    http_rig_send(file, GET("/now"));
    assert_int_equal(shutdown(file, SHUT_WR), 0);
    assert_non_null(strstr(talk(file, "", &is_ended), "\r\n\r\n0 bytes"));
    assert_true(is_ended);
    leave(file);
}

static void a_reply_that_breaks_off_has_no_end(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    (void)talk(file, GET("/stream"), &is_ended);
    http_reply_break(rig.kept[--rig.num_kept]);
    assert_null(strstr(talk(file, "", &is_ended), "0\r\n\r\n"));
    assert_true(is_ended);
    assert_int_equal(rig.num_gone, 0);
    leave(file);
}

static void a_client_that_does_not_read_is_dropped(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    (void)talk(file, GET("/stream"), &is_ended);
    http_request *request = rig.kept[0];
    int num = 0;
    while (http_reply_add(request, text, 10000)) {
        assert_true(++num < 1000);
    }
    assert_int_equal(rig.num_gone, 0); /* not from within */
    http_rig_turn(&rig);
    assert_int_equal(rig.num_gone, 1);
    assert_int_equal(rig.counts.slow_readers, 1);
    leave(file);
}

static void every_reply_of_a_server_that_drains_is_the_last(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    (void)talk(file, GET("/keep"), &is_ended);
    http_server_drain(rig.http);
    assert_true(http_server_is_busy(rig.http));
    reply_kept("end");
    (void)http_rig_receive(file, text, sizeof text, &is_ended);
    assert_non_null(strstr(text, "\r\nConnection: close\r\n"));
    assert_true(is_ended);
    assert_false(http_server_is_busy(rig.http));
    leave(file);
}

static void closing_the_server_tells_of_each_kept_request(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    (void)talk(file, GET("/keep"), &is_ended);
    http_server_close(&rig.http);
    assert_int_equal(rig.num_gone, 1);
    loop_close(&rig.loop);
    assert_int_equal(rig.books.ledger.space_now_bytes[MLA_SPACE_HOST], 0);
    (void)close(file);
    assert_true(http_rig_open(&rig, NULL));
}

/* The linker's names for the C library's functions and for these. The clock on the wall is
 * anywhere in time, another place each time it is asked. */
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
static bool wall_clock_jumps;
int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
time_t __wrap_time(time_t *out);
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

static time_t wall_clock(void)
{
    static time_t last = 1;
    last = (time_t)((uint64_t)last * UINT64_C(6364136223846793005) + 1442695040888963407);
    return last;
}

// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = __real_clock_gettime(clock, out);
    if (wall_clock_jumps && clock == CLOCK_REALTIME) {
        out->tv_sec = wall_clock();
    }
    return result;
}

// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier)
time_t __wrap_time(time_t *out)
{
    struct timespec now;
    (void)__wrap_clock_gettime(CLOCK_REALTIME, &now);
    if (out) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

static void a_clock_that_jumps_ends_nothing(void **state)
{
    (void)state;
    bool is_ended = false;
    int file = http_rig_connect(&rig);
    int half = http_rig_connect(&rig);
    wall_clock_jumps = true;
    http_rig_send(half, "GET /now");
    for (int i = 0; i < 5; i++) {
        (void)usleep(110000); /* a tick of the server's clock */
        assert_non_null(strstr(talk(file, GET("/now"), &is_ended), "\r\n\r\n0 bytes"));
        assert_false(is_ended);
    }
    wall_clock_jumps = false;
    assert_non_null(
        strstr(talk(half, " HTTP/1.1\r\nHost: x\r\n\r\n", &is_ended), "\r\n\r\n0 bytes"));
    assert_false(is_ended);
    leave(file);
    leave(half);
}

/* Memory runs out anywhere: the client gets a reply, or an end. */
static mla_status talk_without_memory(const mla_allocator *allocator, void *arg)
{
    static const char body[] = "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                               "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    bool is_ended = false;
    (void)arg;
    if (!http_rig_open(&rig, allocator)) {
        return MLA_ERR_NO_MEMORY;
    }
    int file = http_rig_connect(&rig);
    bool is_good = strstr(talk(file, body, &is_ended), "\r\n\r\n5 bytes") != NULL;
    is_good = strstr(talk(file, GET("/stream"), &is_ended), " 200 ") && is_good;
    if (rig.num_kept > 0) {
        http_request *request = rig.kept[--rig.num_kept];
        is_good = http_reply_add(request, "more", 4) && is_good;
        http_reply_end(request);
    }
    is_good = strstr(talk(file, "", &is_ended), "0\r\n\r\n") && is_good;
    (void)close(file);
    http_rig_turn(&rig);
    http_rig_close(&rig);
    return is_good ? MLA_OK : MLA_ERR_NO_MEMORY;
}

static void every_allocation_of_a_connection_may_fail(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    assert_true(fault_every("a connection", talk_without_memory, NULL, FAULT_MAY_COPE) >
                20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)
        TEST(a_request_is_answered_and_its_connection_kept),
        TEST(what_is_sent_ahead_waits_for_the_reply),
        TEST(a_stream_comes_in_chunks_as_it_is_written),
        TEST(a_client_that_leaves_is_noticed_once),
        TEST(a_client_that_half_closes_at_once_is_noticed),
        TEST(a_reply_that_breaks_off_has_no_end),
        TEST(a_client_that_does_not_read_is_dropped),
        TEST(every_reply_of_a_server_that_drains_is_the_last),
        TEST(a_clock_that_jumps_ends_nothing),
        TEST(closing_the_server_tells_of_each_kept_request),
        cmocka_unit_test(every_allocation_of_a_connection_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
