/* Starting the pool with every allocation failing, and with every thread failing to start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/pool.h"
#include "support/fault.h"

/* The linker's names: see --wrap. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming) */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);

static int num_creates, create_to_fail = -1; /* < 0: none */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg)
{
    if (num_creates++ == create_to_fail) {
        return EAGAIN;
    }
    return __real_pthread_create(thread, attributes, start, arg);
}

/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

static void count(void *arg, int64_t index, int32_t worker)
{
    (void)index;
    (void)worker;
    atomic_fetch_add((atomic_int *)arg, 1);
}

static mla_status start_run_stop(const mla_allocator *allocator, void *arg)
{
    mlai_ledger ledger;
    mlai_pool *pool = NULL;
    mla_error *err = arg;
    assert_int_equal(mlai_ledger_init(&ledger, allocator, 0, NULL), MLA_OK);
    mla_status status = mlai_pool_start(&ledger, 4, &pool, err);
    if (status == MLA_OK) {
        atomic_int num_run = 0;
        mlai_pool_run(pool, 20, count, &num_run);
        assert_int_equal(num_run, 20);
        mlai_pool_stop(&pool);
    }
    assert_null(pool);
    assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT) == 0);
    return status;
}

static void start_survives_every_failed_allocation(void **state)
{
    (void)state;
    mla_error err;
    create_to_fail = -1;
    assert_int_equal(fault_every("the pool", start_run_stop, &err, FAULT_MUST_FAIL), 2);
}

static void start_gives_all_back_whichever_thread_fails(void **state)
{
    (void)state;
    for (int fail_at = 0; fail_at < 3; fail_at++) {
        mla_error err;
        num_creates = 0;
        create_to_fail = fail_at;
        assert_int_equal(start_run_stop(NULL, &err), MLA_ERR_NO_MEMORY);
        assert_int_equal(num_creates, fail_at + 1);
        assert_int_equal(err.native_code, EAGAIN);
        char words[64];
        (void)snprintf(words, sizeof words, "thread %d of 4 cannot be started",
                       fail_at + 2);
        assert_non_null(strstr(err.message, words));
    }
    create_to_fail = -1;
    assert_int_equal(start_run_stop(NULL, NULL), MLA_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_survives_every_failed_allocation),
        cmocka_unit_test(start_gives_all_back_whichever_thread_fails),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
