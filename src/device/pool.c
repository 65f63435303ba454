#include "device/pool.h"

#include <pthread.h>
#include <stdatomic.h>

struct worker {
    mlai_pool *pool;
    int32_t index;
    pthread_t thread;
};

struct mlai_pool {
    mlai_ledger *ledger;
    int32_t num_threads, num_started;
    pthread_mutex_t turn; /* held by the run in progress */

    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    uint64_t round;           /* under lock: grows with each run */
    int32_t num_busy;         /* under lock: workers still in this round */
    bool is_stopping;         /* under lock */
    mlai_task task;           /* under lock: of this round */
    void *arg;                /* under lock */
    int64_t num_tasks;        /* under lock */
    atomic_int_fast64_t next; /* the next index to hand out */
    struct worker worker[];   /* [num_threads - 1]; the caller is worker 0 */
};

static void work(mlai_pool *pool, mlai_task task, void *arg, int64_t num_tasks,
                 int32_t worker)
{
    for (;;) {
        int64_t index = atomic_fetch_add(&pool->next, 1);
        if (index >= num_tasks) {
            return;
        }
        task(arg, index, worker);
    }
}

static void *serve(void *arg)
{
    struct worker *self = arg;
    mlai_pool *pool = self->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->round == seen && !pool->is_stopping) {
            pthread_cond_wait(&pool->wake, &pool->lock);
        }
        if (pool->is_stopping) {
            break;
        }
        seen = pool->round;
        mlai_task task = pool->task;
        void *task_arg = pool->arg;
        int64_t num_tasks = pool->num_tasks;
        pthread_mutex_unlock(&pool->lock);
        work(pool, task, task_arg, num_tasks, self->index);
        pthread_mutex_lock(&pool->lock);
        if (--pool->num_busy == 0) {
            pthread_cond_signal(&pool->done);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static size_t pool_bytes(int32_t num_threads)
{
    return sizeof(mlai_pool) + (size_t)(num_threads - 1) * sizeof(struct worker);
}

mla_status mlai_pool_start(mlai_ledger *ledger, int32_t num_threads, mlai_pool **out,
                           mla_error *err)
{
    enum { MAX_THREADS = 4096 };
    MLAI_CHECK(num_threads >= 1 && num_threads <= MAX_THREADS, MLA_ERR_ARGUMENT,
               "%d threads were asked for, and a pool has 1 to %d", num_threads,
               MAX_THREADS);
    mlai_pool *pool;
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, 1, pool_bytes(num_threads),
                                     "the thread pool", (void **)&pool, err));
    pool->ledger = ledger;
    pool->num_threads = num_threads;
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (int32_t i = 0; i + 1 < num_threads; i++) {
        pool->worker[i] = (struct worker){.pool = pool, .index = i + 1};
        int code = pthread_create(&pool->worker[i].thread, NULL, serve, &pool->worker[i]);
        if (code != 0) {
            mlai_pool_stop(&pool);
            return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, code, MLAI_HERE,
                                   "thread %d of %d cannot be started", i + 2, num_threads);
        }
        pool->num_started++;
    }
    *out = pool;
    return MLA_OK;
}

void mlai_pool_stop(mlai_pool **pool_in)
{
    mlai_pool *pool = *pool_in;
    if (!pool) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (int32_t i = 0; i < pool->num_started; i++) {
        pthread_join(pool->worker[i].thread, NULL);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->turn);
    mlai_ledger_give(pool->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     pool_bytes(pool->num_threads), pool);
    *pool_in = NULL;
}

int32_t mlai_pool_num_threads(const mlai_pool *pool)
{
    return pool->num_threads;
}

void mlai_pool_run(mlai_pool *pool, int64_t num_tasks, mlai_task task, void *arg)
{
    pthread_mutex_lock(&pool->turn);
    atomic_store(&pool->next, 0);
    bool is_shared = pool->num_threads > 1 && num_tasks > 1;
    if (is_shared) {
        pthread_mutex_lock(&pool->lock);
        pool->task = task;
        pool->arg = arg;
        pool->num_tasks = num_tasks;
        pool->num_busy = pool->num_threads - 1;
        pool->round++;
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
    work(pool, task, arg, num_tasks, 0);
    if (is_shared) {
        pthread_mutex_lock(&pool->lock);
        while (pool->num_busy > 0) {
            pthread_cond_wait(&pool->done, &pool->lock);
        }
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->turn);
}
