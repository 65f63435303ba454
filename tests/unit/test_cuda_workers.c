/* Compiling in processes of their own: what a compiler does there is a sentence here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>

#include "device/cuda/workers.h"
#include "support/fake_cuda.h"

enum { NUM = 5 };

static const mlai_compilation compilations[NUM] = {
    {"one", "text", NULL, 0},  {"two", "text", NULL, 0},  {"three", "text", NULL, 0},
    {"four", "text", NULL, 0}, {"five", "text", NULL, 0},
};

typedef struct job {
    int num_taken[NUM];
    int num_rounds, cancel_after; /* < 0: never */
    mla_status take_status;
} job;

static mla_status keep_on(void *user, mla_error *err)
{
    job *j = user;
    j->num_rounds++;
    MLAI_CHECK(j->cancel_after < 0 || j->num_rounds <= j->cancel_after, MLA_ERR_CANCELLED,
               "enough");
    return MLA_OK;
}

static mla_status take(void *user, int32_t index, const void *image, size_t image_bytes,
                       mla_error *err)
{
    job *j = user;
    assert_memory_equal(image, "image of ", 9);
    assert_string_equal((const char *)image + 9, compilations[index].name);
    assert_int_equal(image_bytes, strlen(image) + 1);
    j->num_taken[index]++;
    MLAI_CHECK(j->take_status == MLA_OK, j->take_status, "not wanted");
    return MLA_OK;
}

static mla_status run(job *j, int32_t num_workers, mla_error *err)
{
    static mlai_nvrtc nvrtc;
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, NULL, 0, NULL), MLA_OK);
    assert_int_equal(mlai_nvrtc_open(NULL, &nvrtc, err), MLA_OK);
    mlai_workers workers = {.ledger = &ledger,
                            .nvrtc = &nvrtc,
                            .num_workers = num_workers,
                            .timeout_ns = 500000000,
                            .keep_on = keep_on,
                            .take = take,
                            .user = j};
    mla_status status = mlai_workers_run(&workers, compilations, NUM, err);
    const mlai_ledger_cell *cell = &ledger.cell[MLA_SPACE_HOST][MLA_FOR_SESSION];
    assert_true(cell->now_bytes == 0);
    assert_true(cell->peak_bytes == mlai_workers_bytes(num_workers));
    return status;
}

static void expect_all(int32_t num_workers)
{
    job j = {.cancel_after = -1};
    fake_cuda_begin();
    assert_int_equal(run(&j, num_workers, NULL), MLA_OK);
    for (int i = 0; i < NUM; i++) {
        assert_int_equal(j.num_taken[i], 1);
    }
    assert_int_equal(fake_nvrtc_num_compiled(), NUM);
    fake_cuda_end();
}

static void each_is_compiled_once_by_any_number_of_workers(void **state)
{
    (void)state;
    expect_all(1);
    expect_all(3);
    expect_all(MLAI_MAX_WORKERS);
}

static void expect_failure(fake_compiler how, mla_status status, const char *text)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    job j = {.cancel_after = -1};
    fake_cuda_begin();
    fake_nvrtc_meet(how, "three");
    assert_int_equal(run(&j, 2, &err), status);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.message, "three"));
    if (!strstr(err.message, text)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, text);
    }
    assert_int_equal(j.num_taken[2], 0);
    fake_cuda_end();
}

static void what_goes_wrong_in_a_worker_is_named(void **state)
{
    (void)state;
    expect_failure(FAKE_COMPILE_ERROR, MLA_ERR_INTERNAL, "k.cu(7): error: it is wrong");
    expect_failure(FAKE_COMPILER_CRASHES, MLA_ERR_INTERNAL, "was killed by signal 11");
    expect_failure(FAKE_COMPILER_LEAVES, MLA_ERR_INTERNAL, "ended without a result");
    expect_failure(FAKE_COMPILER_HANGS, MLA_ERR_TIMEOUT, "hangs and was killed");
    expect_failure(FAKE_IMAGE_TOO_LARGE, MLA_ERR_INTERNAL, "1048577 bytes");
}

static void a_cancel_stops_workers_that_hang(void **state)
{
    (void)state;
    mla_error err = {MLA_OK, 0, NULL, ""};
    job j = {.cancel_after = 3};
    fake_cuda_begin();
    fake_nvrtc_meet(FAKE_COMPILER_HANGS, "e"); /* one, three, five */
    assert_int_equal(run(&j, 4, &err), MLA_ERR_CANCELLED);
    assert_string_equal(err.message, "enough");
    fake_cuda_end();
}

static void an_image_that_cannot_be_taken_ends_it(void **state)
{
    (void)state;
    mla_error err = {MLA_OK, 0, NULL, ""};
    job j = {.cancel_after = -1, .take_status = MLA_ERR_NO_MEMORY};
    fake_cuda_begin();
    assert_int_equal(run(&j, 2, &err), MLA_ERR_NO_MEMORY);
    assert_string_equal(err.message, "not wanted");
    fake_cuda_end();
}

static void a_caller_that_ignores_its_children_does_not_matter(void **state)
{
    (void)state;
    (void)signal(SIGCHLD, SIG_IGN); /* then nobody can wait for them */
    expect_all(2);
    expect_failure(FAKE_COMPILER_CRASHES, MLA_ERR_INTERNAL, "ended without a result");
    (void)signal(SIGCHLD, SIG_DFL);
}

static void a_compiler_older_than_12_8_is_refused_by_name(void **state)
{
    (void)state;
    mlai_nvrtc nvrtc;
    mla_error err;
    fake_cuda_begin();
    fake_nvrtc_set_version(12, 6);
    assert_int_equal(mlai_nvrtc_open(NULL, &nvrtc, &err), MLA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "12.6"));
    fake_nvrtc_set_version(12, 8);
    assert_int_equal(mlai_nvrtc_open(NULL, &nvrtc, &err), MLA_OK);
    assert_int_equal(nvrtc.version, 12080);
    fake_cuda_end();
}

static void a_compiler_that_is_not_there_is_named(void **state)
{
    (void)state;
    mlai_nvrtc nvrtc;
    mla_error err;
    assert_int_equal(mlai_nvrtc_open("/nowhere/libnvrtc.so", &nvrtc, &err),
                     MLA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "/nowhere/libnvrtc.so"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_compiled_once_by_any_number_of_workers),
        cmocka_unit_test(what_goes_wrong_in_a_worker_is_named),
        cmocka_unit_test(a_cancel_stops_workers_that_hang),
        cmocka_unit_test(an_image_that_cannot_be_taken_ends_it),
        cmocka_unit_test(a_caller_that_ignores_its_children_does_not_matter),
        cmocka_unit_test(a_compiler_older_than_12_8_is_refused_by_name),
        cmocka_unit_test(a_compiler_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
