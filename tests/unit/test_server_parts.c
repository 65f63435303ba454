/* The small parts of the server: keys from a file, the timeline of the preparation, and a log
 * that cannot be written. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/access_log.h"
#include "server/api_keys.h"
#include "server/timeline.h"
#include "support/books.h"

static mla_status read_keys(const char *text, size_t bytes, api_keys *out, mla_error *err)
{
    char path[] = "/tmp/mla-keys-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, bytes), bytes);
    mla_status status = api_keys_read(path, out, err);
    assert_int_equal(close(file), 0);
    assert_int_equal(unlink(path), 0);
    return status;
}

static void keys_are_lines(void **state)
{
    (void)state;
    static api_keys keys;
    static const char text[] = "one \r\n\n# no key\n \ntwo\tb";
    mla_error err = {0};
    assert_int_equal(read_keys(text, sizeof text - 1, &keys, &err), MLA_OK);
    assert_int_equal(keys.num, 2);
    assert_true(api_keys_allow(&keys, "Bearer one"));
    assert_true(api_keys_allow(&keys, "bearer two\tb"));
    static const char *const wrong[] = {"",          "Bearer",      "Bearer ",
                                        "Bearer on", "Bearer onee", "Basic one",
                                        "one",       "Bearer  one", "Bearer # no key"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(api_keys_allow(&keys, wrong[i]));
    }
}

static void a_file_of_no_or_of_bad_keys_is_refused(void **state)
{
    (void)state;
    static api_keys keys;
    static char text[API_KEYS_MAX * 2 + 2];
    mla_error err = {0};
    assert_int_equal(read_keys("\n#\n", 3, &keys, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(read_keys("a\0b\n", 4, &keys, &err), MLA_ERR_ARGUMENT);
    memset(text, 'k', API_KEY_MAX_BYTES);
    assert_int_equal(read_keys(text, API_KEY_MAX_BYTES - 1, &keys, &err), MLA_OK);
    assert_int_equal(read_keys(text, API_KEY_MAX_BYTES, &keys, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "line 1"));
    for (size_t i = 0; i + 1 < sizeof text; i += 2) {
        memcpy(text + i, "k\n", 2);
    }
    assert_int_equal(read_keys(text, API_KEYS_MAX * 2, &keys, &err), MLA_OK);
    assert_int_equal(read_keys(text, sizeof text, &keys, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(api_keys_read("/nowhere", &keys, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(api_keys_read("/dev/zero", &keys, &err), MLA_ERR_ARGUMENT);
    static char lines[2 * API_KEYS_MAX * API_KEY_MAX_BYTES + 1];
    memset(lines, '\n', sizeof lines);
    lines[0] = 'k';
    assert_int_equal(read_keys(lines, sizeof lines - 1, &keys, &err), MLA_OK);
    assert_int_equal(read_keys(lines, sizeof lines, &keys, &err), MLA_ERR_ARGUMENT);
}

static void a_timeline_keeps_its_first_point_and_its_peak(void **state)
{
    (void)state;
    static timeline told;
    mla_context books = books_open(NULL);
    mlai_ledger_cell *cell = &books.ledger.cell[MLA_SPACE_HOST][MLA_FOR_SESSION];
    for (int i = 0; i <= 1000; i++) {
        cell->now_bytes = i == 501 ? 99999 : (uint64_t)i;
        timeline_add(&told, &books.ledger);
        assert_in_range(told.num, 1, TIMELINE_MAX_POINTS);
        assert_int_equal(told.points[told.num - 1].session_bytes, cell->now_bytes);
    }
    assert_int_equal(told.peak_bytes, 99999);
    assert_int_equal(told.points[0].session_bytes, 0);
    assert_int_equal(told.points[0].at_ns, 0);
    for (int i = 1; i < told.num; i++) {
        assert_true(told.points[i].at_ns >= told.points[i - 1].at_ns);
    }
}

static const access_entry entry = {.peer = "127.0.0.1",
                                   .method = "GET",
                                   .path = "/a b\"\xff",
                                   .status = 200,
                                   .took_ns = 1500000,
                                   .note = ""};

static void a_line_of_the_log_is_one_line(void **state)
{
    (void)state;
    char text[256] = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    access_log log = {.file = ends[1]};
    access_log_write(&log, &entry);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    assert_true(got > 0);
    assert_string_equal(strchr(text, ' '), " 127.0.0.1 GET /a?b?? 200 1.5ms\n");
    assert_int_equal(log.num_lost, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void a_log_that_cannot_be_written_loses_lines_only(void **state)
{
    (void)state;
    int ends[2];
    access_log full = {.file = open("/dev/full", O_WRONLY)};
    access_log_write(&full, &entry);
    assert_int_equal(full.num_lost, 1);
    (void)close(full.file);
    assert_int_equal(pipe(ends), 0); /* blocks, and nobody reads */
    access_log unread = {.file = ends[1]};
    for (int i = 0; i < 10000; i++) {
        access_log_write(&unread, &entry);
    }
    assert_true(unread.num_lost > 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_lines),
        cmocka_unit_test(a_file_of_no_or_of_bad_keys_is_refused),
        cmocka_unit_test(a_timeline_keeps_its_first_point_and_its_peak),
        cmocka_unit_test(a_line_of_the_log_is_one_line),
        cmocka_unit_test(a_log_that_cannot_be_written_loses_lines_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
