/* The kernel cache on disk: whatever happens to a file or a disk, a reader gets the image that
 * was put, or is told that there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda/kernel_cache.h"

enum { IMAGE_BYTES = 100, MAX_BYTES = 1000, MAX_FILE = 512 };

static char directory[64];
static char image[IMAGE_BYTES];

static int make_directory(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof directory, "/tmp/mla-cache-XXXXXX");
    for (size_t i = 0; i < sizeof image; i++) {
        image[i] = (char)(i * 7);
    }
    return mkdtemp(directory) ? 0 : -1;
}

/* Calls `visit` with each file's path; returns how many there are. */
static int each_file(void (*visit)(const char *path))
{
    DIR *entries = opendir(directory);
    int num = 0;
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        char path[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        visit(path);
        num++;
    }
    (void)closedir(entries);
    return num;
}

static void delete_it(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static int remove_directory(void **state)
{
    (void)state;
    (void)each_file(delete_it);
    return rmdir(directory);
}

static char found_path[512];

static void note_path(const char *path)
{
    (void)snprintf(found_path, sizeof found_path, "%s", path);
}

static mlai_kernel_id id_of(const char *source)
{
    static const char *const options[] = {"-DA=1", "--gpu-architecture=sm_80"};
    return mlai_kernel_id_of(source, options, 2, 13000);
}

static mlai_cached get(const mlai_kernel_id *id, mla_error *why)
{
    char found[MAX_BYTES];
    size_t bytes = 0;
    mlai_cached cached =
        mlai_kernel_cache_get(directory, id, found, sizeof found, &bytes, why);
    if (cached == MLAI_CACHED_FOUND) {
        assert_int_equal(bytes, sizeof image);
        assert_memory_equal(found, image, sizeof image);
    }
    return cached;
}

static mla_status put(const mlai_kernel_id *id, mla_error *err)
{
    return mlai_kernel_cache_put(directory, id, image, sizeof image, err);
}

static void what_was_put_is_found_under_its_id_only(void **state)
{
    (void)state;
    mlai_kernel_id id = id_of("a");
    mlai_kernel_id other = id_of("b");
    assert_int_equal(get(&id, NULL), MLAI_CACHED_ABSENT);
    assert_int_equal(put(&id, NULL), MLA_OK);
    assert_int_equal(get(&id, NULL), MLAI_CACHED_FOUND);
    assert_int_equal(get(&other, NULL), MLAI_CACHED_ABSENT);
    assert_int_equal(put(&id, NULL), MLA_OK); /* again, over the first */
    assert_int_equal(get(&id, NULL), MLAI_CACHED_FOUND);
    assert_int_equal(each_file(note_path), 1);
}

static void a_missing_directory_is_made_but_not_its_parents(void **state)
{
    (void)state;
    char inner[128];
    char deep[160];
    mla_error err;
    mlai_kernel_id id = id_of("a");
    (void)snprintf(inner, sizeof inner, "%s/inner", directory);
    (void)snprintf(deep, sizeof deep, "%s/no/deep", directory);
    assert_int_equal(mlai_kernel_cache_put(deep, &id, image, sizeof image, &err),
                     MLA_ERR_STATE);
    assert_int_equal(err.native_code, ENOENT);
    assert_int_equal(mlai_kernel_cache_put(inner, &id, image, sizeof image, &err), MLA_OK);
    char outer[64];
    memcpy(outer, directory, sizeof outer);
    (void)snprintf(directory, sizeof directory, "%.50s/inner", outer);
    (void)each_file(delete_it);
    assert_int_equal(rmdir(directory), 0);
    memcpy(directory, outer, sizeof outer);
}

static void expect_other(const mlai_kernel_id *id, const char *source,
                         const char *const *options, int32_t num, int32_t compiler)
{
    mlai_kernel_id other = mlai_kernel_id_of(source, options, num, compiler);
    assert_false(mlai_kernel_id_is_equal(id, &other));
}

static void an_id_changes_with_all_that_the_compiler_is_given(void **state)
{
    (void)state;
    const char *const options[] = {"-DA=1", "-DB=2"};
    const char *const swapped[] = {"-DB=2", "-DA=1"};
    const char *const changed[] = {"-DA=1", "-DB=3"};
    const char *const joined[] = {"-DA=1-D", "B=2"};
    mlai_kernel_id id = mlai_kernel_id_of("text", options, 2, 13000);
    mlai_kernel_id same = mlai_kernel_id_of("text", options, 2, 13000);
    assert_true(mlai_kernel_id_is_equal(&id, &same));
    expect_other(&id, "texT", options, 2, 13000);
    expect_other(&id, "text", options, 2, 13010);
    expect_other(&id, "text", options, 1, 13000);
    expect_other(&id, "text", swapped, 2, 13000);
    expect_other(&id, "text", changed, 2, 13000);
    expect_other(&id, "text", joined, 2, 13000);
    expect_other(&id, "", options, 2, 13000);
}

static size_t read_file(const char *path, unsigned char to[MAX_FILE])
{
    int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    ssize_t got = read(file, to, MAX_FILE);
    (void)close(file);
    assert_in_range(got, 1, MAX_FILE - 1);
    return (size_t)got;
}

static void write_file(const char *path, const unsigned char *from, size_t bytes)
{
    int file = open(path, O_WRONLY | O_TRUNC);
    assert_true(file >= 0);
    assert_int_equal(write(file, from, bytes), (ssize_t)bytes);
    (void)close(file);
}

static void a_file_cut_short_anywhere_or_too_long_is_corrupt(void **state)
{
    (void)state;
    unsigned char whole[MAX_FILE] = {0};
    mla_error why;
    mlai_kernel_id id = id_of("a");
    assert_int_equal(put(&id, NULL), MLA_OK);
    (void)each_file(note_path);
    size_t bytes = read_file(found_path, whole);
    for (size_t cut = 0; cut < bytes; cut++) {
        write_file(found_path, whole, cut);
        assert_int_equal(get(&id, &why), MLAI_CACHED_CORRUPT);
        assert_int_equal(why.status, MLA_ERR_CORRUPT);
    }
    write_file(found_path, whole, bytes + 1);
    assert_int_equal(get(&id, &why), MLAI_CACHED_CORRUPT);
    write_file(found_path, whole, bytes);
    assert_int_equal(get(&id, &why), MLAI_CACHED_FOUND);
}

static void a_flipped_bit_anywhere_is_corrupt_and_put_repairs_it(void **state)
{
    (void)state;
    unsigned char whole[MAX_FILE] = {0};
    mlai_kernel_id id = id_of("a");
    assert_int_equal(put(&id, NULL), MLA_OK);
    (void)each_file(note_path);
    size_t bytes = read_file(found_path, whole);
    for (size_t bit = 0; bit < 8 * bytes; bit++) {
        whole[bit / 8] ^= (unsigned char)(1U << bit % 8);
        write_file(found_path, whole, bytes);
        assert_int_equal(get(&id, NULL), MLAI_CACHED_CORRUPT);
        whole[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    assert_int_equal(put(&id, NULL), MLA_OK);
    assert_int_equal(get(&id, NULL), MLAI_CACHED_FOUND);
}

static void an_image_that_the_reader_has_no_room_for_is_corrupt(void **state)
{
    (void)state;
    char small[IMAGE_BYTES - 1];
    size_t bytes = 0;
    mlai_kernel_id id = id_of("a");
    assert_int_equal(put(&id, NULL), MLA_OK);
    assert_int_equal(
        mlai_kernel_cache_get(directory, &id, small, sizeof small, &bytes, NULL),
        MLAI_CACHED_CORRUPT);
    assert_int_equal(bytes, 0);
}

/* Runs `act` in a process of its own; it returns 0 for good. */
static pid_t start(int (*act)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(act());
    }
    return pid;
}

static void expect_good(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int put_and_get(void)
{
    enum { NUM_ROUNDS = 40 };
    mlai_kernel_id id[2] = {id_of("a"), id_of("b")};
    for (int i = 0; i < NUM_ROUNDS; i++) {
        char found[MAX_BYTES];
        size_t bytes = 0;
        if (mlai_kernel_cache_put(directory, &id[i % 2], image, sizeof image, NULL) != 0 ||
            mlai_kernel_cache_get(directory, &id[i % 2], found, sizeof found, &bytes,
                                  NULL) != MLAI_CACHED_FOUND ||
            bytes != sizeof image || memcmp(found, image, bytes) != 0) {
            return 1;
        }
    }
    return 0;
}

static void eight_processes_on_a_cold_cache_do_no_harm(void **state)
{
    (void)state;
    enum { NUM_PROCESSES = 8 };
    pid_t pid[NUM_PROCESSES];
    for (int i = 0; i < NUM_PROCESSES; i++) {
        pid[i] = start(put_and_get);
    }
    for (int i = 0; i < NUM_PROCESSES; i++) {
        expect_good(pid[i]);
    }
    assert_int_equal(each_file(note_path), 2); /* and nothing that was left over */
}

static int put_on_a_full_disk(void)
{
    const struct rlimit limit = {IMAGE_BYTES / 2, IMAGE_BYTES / 2};
    mla_error err;
    mlai_kernel_id id = id_of("a");
    (void)signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &limit) != 0 ||
           mlai_kernel_cache_put(directory, &id, image, sizeof image, &err) !=
               MLA_ERR_STATE ||
           err.native_code != EFBIG;
}

static void a_full_disk_leaves_what_was_there(void **state)
{
    (void)state;
    mlai_kernel_id id = id_of("a");
    expect_good(start(put_on_a_full_disk));
    assert_int_equal(each_file(note_path), 0);
    assert_int_equal(put(&id, NULL), MLA_OK);
    expect_good(start(put_on_a_full_disk));
    assert_int_equal(each_file(note_path), 1);
    assert_int_equal(get(&id, NULL), MLAI_CACHED_FOUND);
}

static int put_where_one_may_not(void)
{
    enum { NOBODY = 65534 };
    mla_error err;
    mlai_kernel_id id = id_of("a");
    if (geteuid() == 0 && setuid(NOBODY) != 0) { /* nothing is read-only for root */
        return 1;
    }
    return mlai_kernel_cache_put(directory, &id, image, sizeof image, &err) !=
               MLA_ERR_STATE ||
           err.native_code != EACCES ||
           mlai_kernel_cache_get(directory, &id, image, sizeof image, &(size_t){0}, NULL) !=
               MLAI_CACHED_FOUND;
}

static void a_directory_that_is_only_for_reading_is_read_from(void **state)
{
    (void)state;
    mlai_kernel_id id = id_of("a");
    assert_int_equal(put(&id, NULL), MLA_OK);
    (void)each_file(note_path);
    assert_int_equal(chmod(found_path, 0444), 0);
    assert_int_equal(chmod(directory, 0555), 0);
    expect_good(start(put_where_one_may_not));
    assert_int_equal(chmod(directory, 0755), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_put_is_found_under_its_id_only),
        TEST(a_missing_directory_is_made_but_not_its_parents),
        TEST(an_id_changes_with_all_that_the_compiler_is_given),
        TEST(a_file_cut_short_anywhere_or_too_long_is_corrupt),
        TEST(a_flipped_bit_anywhere_is_corrupt_and_put_repairs_it),
        TEST(an_image_that_the_reader_has_no_room_for_is_corrupt),
        TEST(eight_processes_on_a_cold_cache_do_no_harm),
        TEST(a_full_disk_leaves_what_was_there),
        TEST(a_directory_that_is_only_for_reading_is_read_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
