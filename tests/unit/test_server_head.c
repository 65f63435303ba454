/* The head of a request, and the first line of a chunk: what is taken, and what is refused with
 * which status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/http/head.h"

#define LINE "POST /a HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

/* 200: it is taken. In a block of just its size. */
static int status_of(const char *text, http_head *head)
{
    size_t bytes = strlen(text);
    char *copy = malloc(bytes + (bytes == 0));
    http_refusal refusal = {0};
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    bool is_good = http_head_parse(copy, bytes, head, &refusal);
    free(copy);
    assert_true(is_good || (refusal.text && refusal.text[0]));
    return is_good ? 200 : refusal.status;
}

static void what_a_head_says_is_taken(void **state)
{
    (void)state;
    static const char text[] =
        "POST /v1/a%20b?c=/d HTTP/1.1\r\nhOST: x\r\nContent-Length: 12\r\n"
        "Authorization: \t Bearer k \r\nExpect: 100-Continue\r\n"
        "Access-Control-Request-Headers: a, b\r\nX-Other: \xc3\xa9\r\n\r\n";
    http_head head;
    assert_int_equal(status_of(text, &head), 200);
    assert_string_equal(head.method, "POST");
    assert_string_equal(head.path, "/v1/a b");
    assert_string_equal(head.authorization, "Bearer k");
    assert_string_equal(head.asked_headers, "a, b");
    assert_true(head.has_length && head.content_length == 12 && !head.is_chunked);
    assert_true(head.expects_continue && head.keeps_alive && !head.is_old);
}

static void how_long_a_connection_lives_is_what_both_versions_say(void **state)
{
    (void)state;
    static const struct row {
        const char *text;
        bool keeps_alive;
    } rows[] = {
        {"GET / HTTP/1.1\r\n" HOST "\r\n", true},
        {"GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" HOST "Connection: upgrade , Close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n", true},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        http_head head;
        assert_int_equal(status_of(rows[i].text, &head), 200);
        assert_int_equal(head.keeps_alive, rows[i].keeps_alive);
    }
}

static void what_is_in_doubt_is_refused(void **state)
{
    (void)state;
    static const struct row {
        const char *text;
        int status;
    } rows[] = {
        {LINE HOST "\r\n", 200},
        {"POST /a\r\n" HOST "\r\n", 400},
        {"POST  /a HTTP/1.1\r\n" HOST "\r\n", 400},
        {"POST /a HTTP/1.1 \r\n" HOST "\r\n", 400},
        {"POST /a http/1.1\r\n" HOST "\r\n", 400},
        {"POST /a HTTP/1.2\r\n" HOST "\r\n", 505},
        {"PO(T /a HTTP/1.1\r\n" HOST "\r\n", 400},
        {"METHODTHATISTOOLONG /a HTTP/1.1\r\n" HOST "\r\n", 501},
        {"POST a HTTP/1.1\r\n" HOST "\r\n", 400},
        {"POST /%4 HTTP/1.1\r\n" HOST "\r\n", 400},
        {"POST /%0a HTTP/1.1\r\n" HOST "\r\n", 400},
        {"POST /%7f HTTP/1.1\r\n" HOST "\r\n", 400},
        {LINE "\r\n", 400},
        {LINE HOST HOST "\r\n", 400},
        {LINE HOST "A\r\n\r\n", 400},
        {LINE HOST ": b\r\n\r\n", 400},
        {LINE HOST "A : b\r\n\r\n", 400},
        {LINE HOST " A: b\r\n\r\n", 400},
        {LINE HOST "A: b\rc\r\n\r\n", 400},
        {LINE HOST "A: b\nC: d\r\n\r\n", 400},
        {LINE HOST "A: \x01\r\n\r\n", 400},
        {LINE HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {LINE HOST "Content-Length: 1 1\r\n\r\n", 400},
        {LINE HOST "Content-Length: -0\r\n\r\n", 400},
        {LINE HOST "Content-Length: 1000000000000000000\r\n\r\n", 400},
        {LINE HOST "Content-Length: 999999999999999999\r\n\r\n", 200},
        {LINE HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400},
        {LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {LINE HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", 501},
        {LINE HOST "Transfer-Encoding: identity\r\n\r\n", 501},
        {LINE HOST "Transfer-Encoding: CHUNKED\r\n\r\n", 200},
        {"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {LINE HOST "Expect: 200\r\n\r\n", 417},
        {LINE HOST "Content-Encoding: br\r\n\r\n", 415},
        {LINE HOST "Content-Encoding: identity\r\n\r\n", 200},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 200},
        {"GET http://x HTTP/1.1\r\n" HOST "\r\n", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        http_head head;
        int status = status_of(rows[i].text, &head);
        if (status != rows[i].status) {
            fail_msg("%s: %d, not %d", rows[i].text, status, rows[i].status);
        }
    }
}

static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    static char text[4096];
    http_head head;
    static const int lengths[][2] = {{HTTP_MAX_PATH - 2, 200}, {HTTP_MAX_PATH - 1, 414}};
    for (int i = 0; i < 2; i++) {
        (void)snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\n" HOST "\r\n",
                       lengths[i][0], 0);
        assert_int_equal(status_of(text, &head), lengths[i][1]);
        (void)snprintf(text, sizeof text, LINE HOST "Authorization: %0*d\r\n\r\n",
                       HTTP_MAX_KEY - 1 + i, 0);
        assert_int_equal(status_of(text, &head), i ? 431 : 200);
        size_t num = (size_t)snprintf(text, sizeof text, LINE HOST);
        for (int j = 0; j < HTTP_MAX_HEADERS - 1 + i; j++) {
            num += (size_t)snprintf(text + num, sizeof text - num, "A: b\r\n");
        }
        (void)snprintf(text + num, sizeof text - num, "\r\n");
        assert_int_equal(status_of(text, &head), i ? 431 : 200);
    }
}

static void the_end_of_a_head_is_found_however_it_comes(void **state)
{
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nA: \r\n\r\nrest";
    for (size_t step = 1; step < 8; step++) {
        size_t from = 0;
        size_t end = 0;
        for (size_t bytes = 0; end == 0 && bytes + 1 < sizeof text;) {
            bytes = bytes + step < sizeof text ? bytes + step : sizeof text - 1;
            end = http_head_find_end(text, bytes, &from);
        }
        assert_int_equal(end, sizeof text - sizeof "rest");
    }
}

static void a_chunk_begins_with_its_size(void **state)
{
    (void)state;
    static const struct row {
        const char *text;
        bool is_good;
        uint64_t size;
    } rows[] = {
        {"0", true, 0},
        {"1aF", true, 0x1af},
        {"5;a=b", true, 5},
        {"5 ;a", true, 5},
        {"000000000000005", true, 5},
        {"", false, 0},
        {";a", false, 0},
        {"0x5", false, 0},
        {"-5", false, 0},
        {"5 5", false, 0},
        {"5;\x01", false, 0},
        {"ffffffffffffffffffff", false, 0},
        {"g", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t size = 77;
        bool is_good =
            http_chunk_size(rows[i].text, strlen(rows[i].text), UINT32_MAX, &size);
        if (is_good != rows[i].is_good || (is_good && size != rows[i].size)) {
            fail_msg("'%s': %d, %llu", rows[i].text, is_good, (unsigned long long)size);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_head_says_is_taken),
        cmocka_unit_test(how_long_a_connection_lives_is_what_both_versions_say),
        cmocka_unit_test(what_is_in_doubt_is_refused),
        cmocka_unit_test(what_is_too_long_is_refused),
        cmocka_unit_test(the_end_of_a_head_is_found_however_it_comes),
        cmocka_unit_test(a_chunk_begins_with_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
