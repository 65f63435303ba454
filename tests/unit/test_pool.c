/* The thread pool: each index once, workers in range, turns between callers, nothing taken
 * after the start, and asleep when idle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/pool.h"

enum { MOST_THREADS = 9, MOST_TASKS = 1000 };

static mlai_pool *pool_of(mlai_ledger *ledger, int32_t num_threads)
{
    mlai_pool *pool = NULL;
    assert_int_equal(mlai_ledger_init(ledger, NULL, 0, NULL), MLA_OK);
    assert_int_equal(mlai_pool_start(ledger, num_threads, &pool, NULL), MLA_OK);
    assert_int_equal(mlai_pool_num_threads(pool), num_threads);
    return pool;
}

static void stop(mlai_ledger *ledger, mlai_pool *pool)
{
    mlai_pool_stop(&pool);
    assert_null(pool);
    assert_true(mlai_ledger_now(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT) == 0);
}

/* What the tasks of a run saw. The counts are plain: each index has one task, so a second
 * one on another thread is a race that the thread sanitizer sees, too. */
typedef struct tally {
    int32_t num_threads;
    int counts[MOST_TASKS]; /* [num_tasks] */
    atomic_int num_out_of_range, num_inside, worker_is_inside[MOST_THREADS];
} tally;

static void count_task(void *arg, int64_t index, int32_t worker)
{
    tally *seen = arg;
    if (index < 0 || index >= MOST_TASKS || worker < 0 || worker >= seen->num_threads) {
        seen->num_out_of_range++;
        return;
    }
    if (atomic_fetch_add(&seen->worker_is_inside[worker], 1) != 0) {
        seen->num_out_of_range++; /* two threads with one worker's number */
    }
    seen->counts[index]++;
    atomic_fetch_sub(&seen->worker_is_inside[worker], 1);
}

static void run_and_check(mlai_pool *pool, int64_t num_tasks)
{
    static tally seen;
    memset(&seen, 0, sizeof seen);
    seen.num_threads = mlai_pool_num_threads(pool);
    mlai_pool_run(pool, num_tasks, count_task, &seen);
    assert_int_equal(seen.num_out_of_range, 0);
    for (int64_t i = 0; i < MOST_TASKS; i++) {
        assert_int_equal(seen.counts[i], i < num_tasks);
    }
}

static void each_index_is_run_once_by_a_worker_in_range(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 64, MOST_TASKS, -5};
    for (int32_t num_threads = 1; num_threads <= MOST_THREADS; num_threads++) {
        mlai_ledger ledger;
        mlai_pool *pool = pool_of(&ledger, num_threads);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            run_and_check(pool, sizes[i]);
        }
        stop(&ledger, pool);
    }
}

/* One run of many: an argument of its own, dead and poisoned when the run is over. */
static void run_with_its_own_argument(mlai_pool *pool, int64_t num_tasks)
{
    tally *seen = calloc(1, sizeof *seen);
    assert_non_null(seen);
    seen->num_threads = mlai_pool_num_threads(pool);
    mlai_pool_run(pool, num_tasks, count_task, seen);
    for (int64_t i = 0; i < num_tasks; i++) {
        assert_int_equal(seen->counts[i], 1);
    }
    assert_int_equal(seen->num_out_of_range, 0);
    seen->num_threads = 0; /* a task that comes late is out of range */
    free(seen);
}

/* Runs close upon each other, short and long by turns: a worker that is late for one must
 * neither work for it any more nor take from the next. The pauses let late ones wake. */
static void runs_in_quick_succession_do_not_mix(void **state)
{
    (void)state;
    for (int32_t num_threads = 2; num_threads <= 5; num_threads += 3) {
        mlai_ledger ledger;
        mlai_pool *pool = pool_of(&ledger, num_threads);
        for (int i = 0; i < 4000; i++) {
            run_with_its_own_argument(pool, i % 2 ? 2 : 12);
            for (volatile int pause = 0; pause < i % 64 * 100; pause++) {
            }
        }
        stop(&ledger, pool);
    }
}

/* All threads of a pool can be inside tasks at once: each waits for the others. */
static void meet(void *arg, int64_t index, int32_t worker)
{
    tally *seen = arg;
    (void)index;
    (void)worker;
    seen->num_inside++;
    int64_t end_ns = mlai_now_ns() + INT64_C(20000000000);
    while (seen->num_inside < seen->num_threads && mlai_now_ns() < end_ns) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    seen->num_out_of_range += seen->num_inside < seen->num_threads;
}

static void all_threads_of_the_pool_work_at_once(void **state)
{
    (void)state;
    for (int32_t num_threads = 1; num_threads <= 4; num_threads++) {
        mlai_ledger ledger;
        mlai_pool *pool = pool_of(&ledger, num_threads);
        static tally seen;
        memset(&seen, 0, sizeof seen);
        seen.num_threads = num_threads;
        mlai_pool_run(pool, num_threads, meet, &seen);
        assert_int_equal(seen.num_out_of_range, 0);
        stop(&ledger, pool);
    }
}

/* The callers' tasks end at once, those of the workers late. */
static void meet_and_linger(void *arg, int64_t index, int32_t worker)
{
    tally *seen = arg;
    meet(arg, index, worker);
    if (worker > 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    }
    seen->counts[index]++;
}

static void a_run_returns_after_its_last_task(void **state)
{
    (void)state;
    for (int32_t num_threads = 2; num_threads <= 4; num_threads++) {
        mlai_ledger ledger;
        mlai_pool *pool = pool_of(&ledger, num_threads);
        static tally seen;
        memset(&seen, 0, sizeof seen);
        seen.num_threads = num_threads;
        mlai_pool_run(pool, num_threads, meet_and_linger, &seen);
        for (int32_t i = 0; i < num_threads; i++) {
            assert_int_equal(seen.counts[i], 1);
        }
        stop(&ledger, pool);
    }
}

static void remember_thread(void *arg, int64_t index, int32_t worker)
{
    pthread_t *threads = arg; /* [num_tasks] */
    (void)worker;
    threads[index] = pthread_self();
}

static void a_pool_of_one_runs_all_on_the_callers_thread_in_order(void **state)
{
    (void)state;
    mlai_ledger ledger;
    mlai_pool *pool = pool_of(&ledger, 1);
    pthread_t threads[8];
    mlai_pool_run(pool, 8, remember_thread, threads);
    for (int i = 0; i < 8; i++) {
        assert_true(pthread_equal(threads[i], pthread_self()));
    }
    stop(&ledger, pool);
}

enum { NUM_CALLERS = 3, NUM_RUNS = 300 };

typedef struct caller {
    mlai_pool *pool;
    int *guarded; /* plain: the turns of the pool are its lock */
    atomic_int *num_inside;
    int num_bad;
} caller;

static void add_alone(void *arg, int64_t index, int32_t worker)
{
    caller *self = arg;
    (void)worker;
    if (index == 0) {
        ++*self->guarded;
    }
}

static void enter_alone(void *arg, int64_t index, int32_t worker)
{
    caller *self = arg;
    (void)index;
    (void)worker;
    int others = atomic_fetch_add(self->num_inside, 1);
    self->num_bad += others != 0;
    atomic_fetch_sub(self->num_inside, 1);
}

static void *call_often(void *arg)
{
    caller *self = arg;
    for (int i = 0; i < NUM_RUNS; i++) {
        mlai_pool_run(self->pool, 5, add_alone, self);
        mlai_pool_run(self->pool, 1, enter_alone,
                      self); /* runs of one task take turns, too */
    }
    return NULL;
}

static void runs_of_different_threads_take_turns(void **state)
{
    (void)state;
    mlai_ledger ledger;
    mlai_pool *pool = pool_of(&ledger, 3);
    int guarded = 0;
    atomic_int num_inside = 0;
    caller callers[NUM_CALLERS];
    pthread_t threads[NUM_CALLERS];
    for (int i = 0; i < NUM_CALLERS; i++) {
        callers[i] = (caller){pool, &guarded, &num_inside, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < NUM_CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(callers[i].num_bad, 0);
    }
    assert_int_equal(guarded, NUM_CALLERS * NUM_RUNS);
    stop(&ledger, pool);
}

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
        run_and_check(pool, i);
    }
    assert_int_equal(calls.num_allocs, 1);
    assert_int_equal(calls.num_releases, 0);
    stop(&ledger, pool);
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
        mlai_pool *pool = pool_of(&ledger, num_threads);
        static tally seen;
        memset(&seen, 0, sizeof seen);
        seen.num_threads = num_threads;
        mlai_pool_run(pool, num_threads, meet, &seen); /* each worker has had a task */
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        int64_t before_ns = cpu_time_ns();
        (void)nanosleep(&idle, NULL);
        int64_t used_ns = cpu_time_ns() - before_ns;
        if (used_ns > 20000000) {
            fail_msg("%d threads used %lld us of CPU in 200 ms of idling", num_threads,
                     (long long)used_ns / 1000);
        }
        run_and_check(pool, 100); /* and they wake up again */
        stop(&ledger, pool);
    }
}

static void a_pool_that_never_ran_stops_and_null_may_be_stopped(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        mlai_ledger ledger;
        stop(&ledger, pool_of(&ledger, 1 + i % 5));
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
    mlai_pool *pool = pool_of(&ledger, 4);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int signal = 1; signal < SIGRTMAX; signal++) {
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
    }
    atomic_int num_wrong = 0;
    mlai_pool_run(pool, 32, read_mask, &num_wrong);
    assert_int_equal(num_wrong, 0);
    stop(&ledger, pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_index_is_run_once_by_a_worker_in_range),
        cmocka_unit_test(runs_in_quick_succession_do_not_mix),
        cmocka_unit_test(all_threads_of_the_pool_work_at_once),
        cmocka_unit_test(a_run_returns_after_its_last_task),
        cmocka_unit_test(a_pool_of_one_runs_all_on_the_callers_thread_in_order),
        cmocka_unit_test(runs_of_different_threads_take_turns),
        cmocka_unit_test(nothing_is_taken_after_the_start),
        cmocka_unit_test(idle_workers_sleep),
        cmocka_unit_test(a_pool_that_never_ran_stops_and_null_may_be_stopped),
        cmocka_unit_test(a_number_of_threads_out_of_range_is_refused),
        cmocka_unit_test(workers_leave_signals_to_the_callers_threads),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
