/* tally.h - tasks for a pool under test that note what they saw, and pools to run them. */
#ifndef TEST_TALLY_H
#define TEST_TALLY_H

#include <stdatomic.h>

#include "device/pool.h"

enum { MOST_THREADS = 9, MOST_TASKS = 1000 };

/* What the tasks of a run saw. The counts are plain: each index has one task, so a second
 * one on another thread is a race that the thread sanitizer sees, too. */
typedef struct tally {
    int32_t num_threads;
    int counts[MOST_TASKS]; /* [num_tasks] */
    atomic_int num_out_of_range, num_inside, worker_is_inside[MOST_THREADS];
} tally;

/* A pool on a ledger that this initialises; cmocka fails where it cannot be had. */
mlai_pool *tally_pool_of(mlai_ledger *ledger, int32_t num_threads);

/* Stops it and checks that the ledger has everything back. */
void tally_stop(mlai_ledger *ledger, mlai_pool *pool);

/* Runs num_tasks of tally_count and checks that each index in [0, num_tasks) came once. */
void tally_run(mlai_pool *pool, int64_t num_tasks);

/* Tasks; arg is a tally whose num_threads is the pool's. tally_meet returns when as many
 * tasks are inside as the pool has threads, or notes after 20 s that they never were. */
void tally_count(void *arg, int64_t index, int32_t worker);
void tally_meet(void *arg, int64_t index, int32_t worker);

#endif
