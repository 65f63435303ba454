/* Runs of the thread pool: each index once, workers in range, turns between callers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/tally.h"

static void each_index_is_run_once_by_a_worker_in_range(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 64, MOST_TASKS, -5};
    for (int32_t num_threads = 1; num_threads <= MOST_THREADS; num_threads++) {
        mlai_ledger ledger;
        mlai_pool *pool = tally_pool_of(&ledger, num_threads);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            tally_run(pool, sizes[i]);
        }
        tally_stop(&ledger, pool);
    }
}

/* One run of many: an argument of its own, dead and poisoned when the run is over. */
static void run_with_its_own_argument(mlai_pool *pool, int64_t num_tasks)
{
    tally *seen = calloc(1, sizeof *seen);
    assert_non_null(seen);
    seen->num_threads = mlai_pool_num_threads(pool);
    mlai_pool_run(pool, num_tasks, tally_count, seen);
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
        mlai_pool *pool = tally_pool_of(&ledger, num_threads);
        for (int i = 0; i < 4000; i++) {
            run_with_its_own_argument(pool, i % 2 ? 2 : 12);
            for (volatile int pause = 0; pause < i % 64 * 100; pause++) {
            }
        }
        tally_stop(&ledger, pool);
    }
}

static void all_threads_of_the_pool_work_at_once(void **state)
{
    (void)state;
    for (int32_t num_threads = 1; num_threads <= 4; num_threads++) {
        mlai_ledger ledger;
        mlai_pool *pool = tally_pool_of(&ledger, num_threads);
        static tally seen;
        memset(&seen, 0, sizeof seen);
        seen.num_threads = num_threads;
        mlai_pool_run(pool, num_threads, tally_meet, &seen);
        assert_int_equal(seen.num_out_of_range, 0);
        tally_stop(&ledger, pool);
    }
}

/* The callers' tasks end at once, those of the workers late. */
static void meet_and_linger(void *arg, int64_t index, int32_t worker)
{
    tally *seen = arg;
    tally_meet(arg, index, worker);
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
        mlai_pool *pool = tally_pool_of(&ledger, num_threads);
        static tally seen;
        memset(&seen, 0, sizeof seen);
        seen.num_threads = num_threads;
        mlai_pool_run(pool, num_threads, meet_and_linger, &seen);
        for (int32_t i = 0; i < num_threads; i++) {
            assert_int_equal(seen.counts[i], 1);
        }
        tally_stop(&ledger, pool);
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
    mlai_pool *pool = tally_pool_of(&ledger, 1);
    pthread_t threads[8];
    mlai_pool_run(pool, 8, remember_thread, threads);
    for (int i = 0; i < 8; i++) {
        assert_true(pthread_equal(threads[i], pthread_self()));
    }
    tally_stop(&ledger, pool);
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
    mlai_pool *pool = tally_pool_of(&ledger, 3);
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
    tally_stop(&ledger, pool);
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
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
