/* pool.h - a fixed set of threads that run numbered tasks.
 *
 * mlai_pool_run calls task(arg, index, worker) once for each index in [0, num_tasks), on
 * the calling thread and the pool's, and returns when all have returned. Indices are
 * handed out in order, to whoever is free: a task must not care which worker runs it.
 * Nothing is allocated after the start. Idle workers sleep, at most 20 us after their last
 * task. Runs from different threads take turns; a task must not start a run of its own. */
#ifndef MLA_DEVICE_POOL_H
#define MLA_DEVICE_POOL_H

#include <stdint.h>

#include "base/ledger.h"

typedef struct mlai_pool mlai_pool;
typedef void (*mlai_task)(void *arg, int64_t index, int32_t worker);

/* num_threads >= 1, the caller's own included: 1 starts none. ledger: borrowed until stop.
 * out: owned, mlai_pool_stop. MLA_ERR_NO_MEMORY where a thread cannot be started. */
mla_status mlai_pool_start(mlai_ledger *ledger, int32_t num_threads, mlai_pool **out,
                           mla_error *err);
void mlai_pool_stop(mlai_pool **pool); /* *pool may be NULL */

int32_t mlai_pool_num_threads(const mlai_pool *pool); /* `worker` is in [0, this) */
void mlai_pool_run(mlai_pool *pool, int64_t num_tasks, mlai_task task, void *arg);

#endif
