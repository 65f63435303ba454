/* The life of a thread pool: nothing taken after the start, asleep when idle, stopped whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/tally.h"

typedef struct call_counter {
    atomic_int num_allocs, num_releases;
} call_counter;

static void *counted_alloc(void *user, size_t bytes, size_t align_bytes, mla_space space,
                           mla_purpose purpose)
{
    (void)space;
    (void)purpose;
    ((call_counter *)user)->num_allocs++;
    return aligned_alloc(align_bytes,
                         (bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static void counted_release(void *user, void *data, size_t bytes, mla_space space,
                            mla_purpose purpose)
{
    (void)bytes;
    (void)space;
    (void)purpose;
    ((call_counter *)user)->num_releases++;
    free(data);
}

static void nothing_is_taken_after_the_start(void **state)
{
    (void)state;
    call_counter calls = {0};
    mla_allocator allocator = MLA_INIT(mla_allocator);
    allocator.alloc = counted_alloc;
    allocator.release = counted_release;
    allocator.user = &calls;
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, &allocator, 0, NULL), MLA_OK);
    mlai_pool *pool = NULL;
    assert_int_equal(mlai_pool_start(&ledger, 4, &pool, NULL), MLA_OK);
    assert_int_equal(calls.num_allocs, 1);
    mlai_ledger_freeze(&ledger);
    for (int i = 0; i < 100; i++) {
        tally_run(pool, i);
    }
    assert_int_equal(calls.num_allocs, 1);
    assert_int_equal(calls.num_releases, 0);
    tally_stop(&ledger, pool);
    assert_int_equal(calls.num_releases, 1);
}

static int64_t cpu_time_ns(void)
{
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One spinning thread would use 200 ms in 200 ms. */
static void idle_workers_sleep(void **state)
{
    (void)state;
    const struct timespec idle = {.tv_nsec = 200000000};
    for (int32_t num_threads = 2; num_threads <= 4; num_threads += 2) {
        mlai_ledger ledger;
        mlai_pool *pool = tally_pool_of(&ledger, num_threads);
        static tally seen;
        memset(&seen, 0, sizeof seen);
        seen.num_threads = num_threads;
        mlai_pool_run(pool, num_threads, tally_meet,
                      &seen); /* each worker has had a task */
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        int64_t before_ns = cpu_time_ns();
        (void)nanosleep(&idle, NULL);
        int64_t used_ns = cpu_time_ns() - before_ns;
        if (used_ns > 20000000) {
            fail_msg("%d threads used %lld us of CPU in 200 ms of idling", num_threads,
                     (long long)used_ns / 1000);
        }
        tally_run(pool, 100); /* and they wake up again */
        tally_stop(&ledger, pool);
    }
}

static void a_pool_that_never_ran_stops_and_null_may_be_stopped(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        mlai_ledger ledger;
        tally_stop(&ledger, tally_pool_of(&ledger, 1 + i % 5));
    }
    mlai_pool *none = NULL;
    mlai_pool_stop(&none);
}

static void a_number_of_threads_out_of_range_is_refused(void **state)
{
    (void)state;
    static const int32_t refused[] = {0, -1, INT32_MIN, 4097, INT32_MAX};
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, NULL, 0, NULL), MLA_OK);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        mlai_pool *pool = NULL;
        mla_error err;
        assert_int_equal(mlai_pool_start(&ledger, refused[i], &pool, &err),
                         MLA_ERR_ARGUMENT);
        assert_null(pool);
        assert_non_null(strstr(err.message, "threads were asked for"));
    }
}

static void read_mask(void *arg, int64_t index, int32_t worker)
{
    atomic_int *num_wrong = arg;
    (void)index;
    sigset_t blocked;
    if (worker > 0 && pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0) {
        *num_wrong += !sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM) ||
                      sigismember(&blocked, SIGSEGV);
    }
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); /* others get a turn */
}

static void workers_leave_signals_to_the_callers_threads(void **state)
{
    (void)state;
    sigset_t before;
    sigset_t after;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    mlai_ledger ledger;
    mlai_pool *pool = tally_pool_of(&ledger, 4);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int signal = 1; signal < SIGRTMAX; signal++) {
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
    }
    atomic_int num_wrong = 0;
    mlai_pool_run(pool, 32, read_mask, &num_wrong);
    assert_int_equal(num_wrong, 0);
    tally_stop(&ledger, pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_taken_after_the_start),
        cmocka_unit_test(idle_workers_sleep),
        cmocka_unit_test(a_pool_that_never_ran_stops_and_null_may_be_stopped),
        cmocka_unit_test(a_number_of_threads_out_of_range_is_refused),
        cmocka_unit_test(workers_leave_signals_to_the_callers_threads),
    };
    return cmocka_run_group_tests_name("pool_life", tests, NULL, NULL);
}
