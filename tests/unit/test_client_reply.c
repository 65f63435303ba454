/* Replies of a server out of their frames, in pieces of any size, and those that are broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/client.h"

static mla_context *context;

static int begin(void **state)
{
    (void)state;
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CPU;
    return mla_context_create(&options, &context, NULL) == MLA_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return mla_context_destroy(&context, NULL) == MLA_OK ? 0 : -1;
}

/* In pieces of `piece` bytes, and then, if the call still waits, the connection's end. */
static client_call feed(const char *text, size_t piece)
{
    client_call call = client_call_none(context);
    call.is_done = false;
    for (size_t at = 0; at < strlen(text) && !call.is_done; at += piece) {
        size_t left = strlen(text) - at;
        assert_int_equal(
            client_append(&call.in, text + at, left < piece ? left : piece, NULL), MLA_OK);
        assert_int_equal(client_reply_take(&call, false, NULL), MLA_OK);
    }
    assert_int_equal(client_reply_take(&call, true, NULL), MLA_OK);
    assert_true(call.is_done);
    return call;
}

static void expect_body(const char *text, int status, const char *body)
{
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        client_call call = feed(text, piece);
        assert_string_equal(call.failure, "");
        assert_int_equal(call.status, status);
        assert_int_equal(call.body.num, strlen(body));
        assert_memory_equal(call.body.data, body, strlen(body));
        client_call_end(&call);
    }
}

static void expect_failure(const char *text, const char *words)
{
    for (size_t piece = 1; piece <= strlen(text); piece++) {
        client_call call = feed(text, piece);
        assert_non_null(strstr(call.failure, words));
        client_call_end(&call);
    }
}

static void counted_bodies_are_taken_whole(void **state)
{
    (void)state;
    expect_body("HTTP/1.1 200 OK\r\nA: b\r\ncontent-length: 5\r\n\r\nhello", 200, "hello");
    expect_body("HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\n{}", 400, "{}");
}

static void chunks_are_put_together(void **state)
{
    (void)state;
    expect_body("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                "6\r\nabc\r\nd\r\n10\r\n0123456789abcdef\r\n1\r\n!\r\n0\r\n\r\n",
                200, "abc\r\nd0123456789abcdef!");
}

static void a_body_without_a_length_ends_with_its_connection(void **state)
{
    (void)state;
    expect_body("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it", 200, "all of it");
}

static void a_reply_that_is_cut_short_is_a_failure(void **state)
{
    (void)state;
    expect_failure("HTTP/1.1 200 OK\r\nContent-Len", "ended within");
    expect_failure("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "ended within");
    expect_failure("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                   "ended within");
    expect_failure(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "ended within");
}

static void broken_frames_are_a_failure(void **state)
{
    (void)state;
    static const char chunked[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    char text[256];
    expect_failure("SSH-2.0-server\r\n\r\n", "not HTTP/1.1");
    expect_failure("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "not a number");
    expect_failure("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n",
                   "too large");
    (void)snprintf(text, sizeof text, "%sxyz\r\n", chunked);
    expect_failure(text, "no size");
    (void)snprintf(text, sizeof text, "%sffffffffff\r\n", chunked);
    expect_failure(text, "too large");
    (void)snprintf(text, sizeof text, "%s2\r\nabc\r\n", chunked);
    expect_failure(text, "does not end with its line");
}

static void an_address_is_a_host_and_a_port(void **state)
{
    (void)state;
    client_address at;
    mla_error error = {0};
    assert_int_equal(client_address_of("http://127.0.0.1:80/", &at, &error), MLA_OK);
    assert_string_equal(at.host, "127.0.0.1:80");
    assert_int_equal(client_address_of("http://[::1]:8000", &at, &error), MLA_OK);
    assert_string_equal(at.host, "[::1]:8000");
    assert_int_equal(at.where.ss_family, AF_INET6);
    const char *const bad[] = {
        "127.0.0.1:80",          "http://127.0.0.1",      "http://:80",
        "http://127.0.0.1:http", "https://127.0.0.1:443", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(client_address_of(bad[i], &at, &error), MLA_ERR_ARGUMENT);
        assert_non_null(strstr(error.message, bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted_bodies_are_taken_whole),
        cmocka_unit_test(chunks_are_put_together),
        cmocka_unit_test(a_body_without_a_length_ends_with_its_connection),
        cmocka_unit_test(a_reply_that_is_cut_short_is_a_failure),
        cmocka_unit_test(broken_frames_are_a_failure),
        cmocka_unit_test(an_address_is_a_host_and_a_port),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
