/* tally.c - see tally.h. */
#include "support/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <time.h>

#include "base/clock.h"

mlai_pool *tally_pool_of(mlai_ledger *ledger, int32_t num_threads)
{
    mlai_pool *pool = NULL;
    assert_int_equal(mlai_ledger_init(ledger, NULL, 0, NULL), MLA_OK);
    assert_int_equal(mlai_pool_start(ledger, num_threads, &pool, NULL), MLA_OK);
    assert_int_equal(mlai_pool_num_threads(pool), num_threads);
    return pool;
}

void tally_stop(mlai_ledger *ledger, mlai_pool *pool)
{
    mlai_pool_stop(&pool);
    assert_null(pool);
    assert_true(mlai_ledger_now(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT) == 0);
}

void tally_count(void *arg, int64_t index, int32_t worker)
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

void tally_run(mlai_pool *pool, int64_t num_tasks)
{
    static tally seen;
    memset(&seen, 0, sizeof seen);
    seen.num_threads = mlai_pool_num_threads(pool);
    mlai_pool_run(pool, num_tasks, tally_count, &seen);
    assert_int_equal(seen.num_out_of_range, 0);
    for (int64_t i = 0; i < MOST_TASKS; i++) {
        assert_int_equal(seen.counts[i], i < num_tasks);
    }
}

/* All threads of a pool can be inside tasks at once: each waits for the others. */
void tally_meet(void *arg, int64_t index, int32_t worker)
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
