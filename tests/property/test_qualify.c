/* `mla qualify attention` on a device that runs no kernel (the fake driver): every case fails by
 * its own sentence, the receipt is written all the same, and everything is given back. So the
 * verdict is not one that always passes, and the whole host path of CUDA works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/qualify_case.h"
#include "support/fake_cuda.h"

static char folder[] = "/tmp/mla_qualify_XXXXXX";
static char path[64];

static int begin(void **state)
{
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/receipt.json", folder);
    fake_cuda_begin();
    return 0;
}

/* Nothing may be left in the folder but the receipt. */
static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0);
    fake_cuda_end();
    return 0;
}

static int qualify(void)
{
    char name[] = "mla qualify";
    char what[] = "attention";
    char device[] = "--device=cuda";
    char out[] = "--out";
    char *argv[] = {name, what, device, out, path, NULL};
    return command_qualify(5, argv);
}

static void check_case(const json_t *item, int index)
{
    qualify_case c = qualify_case_of(index);
    const json_t *lse = json_object_get(item, "lse");
    assert_string_equal(json_string_value(json_object_get(item, "name")), c.name);
    assert_true(json_is_false(json_object_get(item, "passed")));
    assert_true(json_is_null(json_object_get(lse, "error"))); /* NaN */
    const char *failure = json_string_value(json_object_get(item, "failure"));
    assert_non_null(failure);
    assert_non_null(strstr(failure, "one device"));
    assert_non_null(strstr(failure, "nan"));
    const char *plan = json_string_value(json_object_get(item, "plan"));
    assert_int_equal(strncmp(plan, "cuda:sm90", 9), 0);
}

static bool says(const json_t *sentences, const char *words)
{
    for (size_t i = 0; i < json_array_size(sentences); i++) {
        if (strstr(json_string_value(json_array_get(sentences, i)), words)) {
            return true;
        }
    }
    return false;
}

/* The fake's device is a small one, too. */
static void a_device_that_computes_nothing_fails_every_case(void **state)
{
    (void)state;
    assert_int_equal(qualify(), COMMAND_FAILED);
    json_t *receipt = json_load_file(path, 0, NULL);
    assert_non_null(receipt);
    assert_true(json_is_false(json_object_get(receipt, "passed")));
    const json_t *ledger = json_object_get(receipt, "ledger");
    assert_true(json_is_true(json_object_get(ledger, "balanced")));
    const char *driver = json_string_value(json_object_get(receipt, "driver"));
    assert_non_null(strstr(driver, "CUDA "));
    const char *compiler = json_string_value(json_object_get(receipt, "compiler"));
    assert_int_equal(strncmp(compiler, "NVRTC ", 6), 0);
    assert_true(says(json_object_get(receipt, "not_shown"), "Pages beyond 4 GiB"));
    const json_t *cases = json_object_get(receipt, "cases");
    assert_int_equal(json_array_size(cases), QUALIFY_NUM_CASES);
    for (int i = 0; i < QUALIFY_NUM_CASES; i++) {
        check_case(json_array_get(cases, (size_t)i), i);
    }
    json_decref(receipt);
}

static void a_device_that_dies_in_the_prime_leaves_no_receipt(void **state)
{
    (void)state;
    enum { SOMEWHERE_IN_IT = 100 };
    fake_cuda_fail(SOMEWHERE_IN_IT, MLAI_CU_ERROR_ILLEGAL_ADDRESS, true);
    assert_int_equal(qualify(), COMMAND_FAILED);
    assert_non_null(fake.failed);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_device_that_dies_later_fails_the_cases_from_there_on(void **state)
{
    (void)state;
    enum { AFTER_THE_PREPARATION = 3000 };
    fake_cuda_fail(AFTER_THE_PREPARATION, MLAI_CU_ERROR_ILLEGAL_ADDRESS, true);
    assert_int_equal(qualify(), COMMAND_FAILED);
    assert_non_null(fake.failed);
    json_t *receipt = json_load_file(path, 0, NULL);
    const json_t *cases = json_object_get(receipt, "cases");
    const json_t *last = json_array_get(cases, QUALIFY_NUM_CASES - 1);
    const char *failure = json_string_value(json_object_get(last, "failure"));
    assert_non_null(failure);
    assert_non_null(strstr(failure, "(700)"));
    json_decref(receipt);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_device_that_computes_nothing_fails_every_case),
        TEST(a_device_that_dies_in_the_prime_leaves_no_receipt),
        TEST(a_device_that_dies_later_fails_the_cases_from_there_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
