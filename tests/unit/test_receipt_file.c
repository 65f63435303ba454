/* A receipt is there whole or not at all, and an older one stays until then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/receipt_file.h"

static char folder[] = "/tmp/mla_receipt_XXXXXX";
static char path[64];

static int begin(void **state)
{
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/receipt.json", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static int num_files(void)
{
    DIR *open = opendir(folder);
    assert_non_null(open);
    int num = 0;
    for (const struct dirent *entry = readdir(open); entry; entry = readdir(open)) {
        num += entry->d_name[0] != '.';
    }
    (void)closedir(open);
    return num;
}

static void expect_text(const char *text)
{
    char found[32] = "";
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    (void)fread(found, 1, sizeof found - 1, file);
    (void)fclose(file);
    assert_string_equal(found, text);
}

static void write_receipt(const char *text)
{
    static receipt_file receipt;
    assert_int_equal(receipt_file_open(path, &receipt, NULL), MLA_OK);
    assert_int_equal(receipt_file_finish(&receipt, text, strlen(text), NULL), MLA_OK);
    receipt_file_close(&receipt);
}

static void a_finished_receipt_takes_the_place_of_an_older_one(void **state)
{
    (void)state;
    write_receipt("a longer first text\n");
    expect_text("a longer first text\n");
    write_receipt("second\n");
    expect_text("second\n");
    assert_int_equal(num_files(), 1);
}

static void what_is_not_finished_leaves_no_trace(void **state)
{
    (void)state;
    static receipt_file receipt;
    write_receipt("first\n");
    assert_int_equal(receipt_file_open(path, &receipt, NULL), MLA_OK);
    assert_int_equal(num_files(), 2);
    expect_text("first\n");
    receipt_file_close(&receipt);
    receipt_file_close(&receipt);
    expect_text("first\n");
    assert_int_equal(num_files(), 1);
}

static void a_place_that_cannot_be_is_refused_by_name(void **state)
{
    (void)state;
    static receipt_file receipt;
    mla_error err = {MLA_OK, 0, NULL, ""};
    (void)snprintf(path, sizeof path, "%s/none/receipt.json", folder);
    assert_int_equal(receipt_file_open(path, &receipt, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "none/receipt.json"));
    receipt_file_close(&receipt);
    assert_int_equal(receipt_file_open("", &receipt, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(num_files(), 0);
}

static void expect_refused_as_it_is(const char *what)
{
    static receipt_file receipt;
    mla_error err = {MLA_OK, 0, NULL, ""};
    assert_int_equal(receipt_file_open(what, &receipt, &err), MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, what));
    receipt_file_close(&receipt);
}

/* As root, /dev/null would become a file. */
static void what_is_no_regular_file_is_not_replaced(void **state)
{
    (void)state;
    expect_refused_as_it_is(folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused_as_it_is(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/dev/null", path), 0);
    expect_refused_as_it_is(path);
    assert_int_equal(num_files(), 1);
}

/* Its name has become a folder's: the rename fails. */
static void a_failing_rename_leaves_no_trace_either(void **state)
{
    (void)state;
    static receipt_file receipt;
    mla_error err = {MLA_OK, 0, NULL, ""};
    assert_int_equal(receipt_file_open(path, &receipt, NULL), MLA_OK);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(receipt_file_finish(&receipt, "x", 1, &err), MLA_ERR_ARGUMENT);
    assert_int_not_equal(access(receipt.fresh, F_OK), 0);
    assert_int_equal(rmdir(path), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_finished_receipt_takes_the_place_of_an_older_one),
        TEST(what_is_not_finished_leaves_no_trace),
        TEST(a_place_that_cannot_be_is_refused_by_name),
        TEST(what_is_no_regular_file_is_not_replaced),
        TEST(a_failing_rename_leaves_no_trace_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
