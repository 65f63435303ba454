/* Threads that prepare, bind, run, report, cancel, freeze and try to destroy one context at
 * once: what is refused is refused with the status that the header names, and in the end
 * everything has been given back. The thread sanitizer watches. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/must.h"
#include "support/rig.h"

enum { NUM_WORKERS = 4, NUM_ROUNDS = 25, MOST_PAUSE_NS = 300000 };

typedef struct arena {
    mla_context *context;
    mla_plan *plan; /* held by the test: the context is never without a child */
    mla_caps caps;
    atomic_bool is_over;
    atomic_int num_wrong, num_cancelled, num_prepared, num_frozen, num_reports;
    char wrong[160]; /* the first; written by whoever raised num_wrong from 0 */
} arena;

/* cmocka's own asserts belong to the main thread. */
static void hold(arena *a, bool is_so, const char *what)
{
    if (!is_so && atomic_fetch_add(&a->num_wrong, 1) == 0) {
        strncpy(a->wrong, what, sizeof a->wrong - 1);
    }
}

#define HOLD(a, promise) hold((a), (promise), #promise)

typedef struct worker {
    arena *arena;
    pthread_t thread;
    uint64_t seed;
} worker;

static void pause_ns(int64_t most, rng *random)
{
    const struct timespec pause = {0, (long)rng_between(random, 0, most)};
    (void)nanosleep(&pause, NULL);
}

typedef struct canceller {
    mla_session *session;
    uint64_t seed;
} canceller;

static void *cancel_sometime(void *arg)
{
    const canceller *self = arg;
    rng random = rng_of_seed(self->seed);
    if (rng_between(&random, 0, 1)) { /* else at once: the shortest pause is too long */
        pause_ns(MOST_PAUSE_NS, &random);
    }
    mla_session_cancel(self->session);
    return NULL;
}

/* Prepares under a cancel that comes at some time; NULL where the freeze was first. */
static mla_plan *prepare_under_cancel(const worker *self, rng *random)
{
    arena *a = self->arena;
    mla_session *session = NULL;
    mla_plan *plan = NULL;
    mla_caps caps = a->caps;
    mla_ticket ticket = -1;
    mla_status status = mla_session_open(a->context, NULL, &session, NULL);
    HOLD(a, status == MLA_OK || status == MLA_ERR_FROZEN);
    if (status != MLA_OK) {
        atomic_fetch_add(&a->num_frozen, 1);
        return NULL;
    }
    caps.num_heads = 1 + (int32_t)rng_between(random, 0, 3);
    HOLD(a, mla_session_add(session, &caps, NULL, &ticket, NULL) == MLA_OK);
    canceller cancel = {session, rng_u64(random)};
    pthread_t thread;
    HOLD(a, pthread_create(&thread, NULL, cancel_sometime, &cancel) == 0);
    status = mla_session_prepare(session, NULL);
    HOLD(a, status == MLA_OK || status == MLA_ERR_CANCELLED);
    HOLD(a, pthread_join(thread, NULL) == 0);
    atomic_fetch_add(status == MLA_OK ? &a->num_prepared : &a->num_cancelled, 1);
    mla_status published = mla_session_publish(session, ticket, &plan, NULL);
    HOLD(a, published == (status == MLA_OK ? MLA_OK : MLA_ERR_STATE));
    mla_session_close(&session);
    return plan;
}

/* Binds buffers of its own and uses them; plan: the shared one or the worker's. */
static void use(const worker *self, mla_plan *plan)
{
    arena *a = self->arena;
    mla_requirements need = MLA_INIT(mla_requirements);
    mla_batch batch = MLA_INIT(mla_batch);
    mla_binding *binding = NULL;
    HOLD(a, mla_plan_requirements(plan, &need, NULL) == MLA_OK);
    mla_buffers buffers = rig_buffers(&need);
    memset((void *)(uintptr_t)buffers.query_starts.data, 0, buffers.query_starts.bytes);
    mla_status status = mla_bind(plan, &buffers, &binding, NULL);
    HOLD(a, status == MLA_OK || status == MLA_ERR_FROZEN);
    if (status == MLA_OK) {
        int32_t *starts = (int32_t *)(uintptr_t)buffers.query_starts.data;
        batch.num_requests = 2;
        batch.num_query_rows = 2;
        starts[1] = 1;
        starts[2] = 2;
        HOLD(a, mla_run(binding, &batch, (mla_stream){NULL}, NULL) == MLA_OK);
        status = mla_record(binding, &batch, NULL);
        HOLD(a, status == MLA_OK || status == MLA_ERR_FROZEN);
        HOLD(a, mla_replay(binding, (mla_stream){NULL}, NULL) ==
                    (status == MLA_OK ? MLA_OK : MLA_ERR_STATE));
        HOLD(a, mla_poll(binding, NULL) == MLA_OK);
    }
    mla_unbind(&binding);
    rig_buffers_free(&buffers);
}

static void *work(void *arg)
{
    const worker *self = arg;
    rng random = rng_of_seed(self->seed);
    for (int round = 0; round < NUM_ROUNDS; round++) {
        mla_plan *shared = mla_plan_retain(self->arena->plan);
        mla_plan *own = prepare_under_cancel(self, &random);
        use(self, rng_between(&random, 0, 1) && own ? own : shared);
        mla_plan_release(&own);
        mla_plan_release(&shared);
        pause_ns(MOST_PAUSE_NS, &random);
    }
    return NULL;
}

/* What holds of a report at any moment. */
static void *report(void *arg)
{
    arena *a = arg;
    while (!atomic_load(&a->is_over)) {
        mla_memory_report books = MLA_INIT(mla_memory_report);
        HOLD(a, mla_context_memory(a->context, &books, NULL) == MLA_OK);
        for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
            const mla_memory_cell *cell = &books.cell[MLA_SPACE_HOST][purpose];
            HOLD(a, cell->now_bytes <= cell->peak_bytes);
            HOLD(a, cell->num_frees <= cell->num_allocs);
        }
        atomic_fetch_add(&a->num_reports, 1);
    }
    return NULL;
}

static void *destroy_in_vain(void *arg)
{
    arena *a = arg;
    rng random = rng_of_seed(1);
    while (!atomic_load(&a->is_over)) {
        mla_context *context = a->context;
        HOLD(a, mla_context_destroy(&context, NULL) == MLA_ERR_STATE && context);
        pause_ns(MOST_PAUSE_NS, &random);
    }
    return NULL;
}

/* Succeeds when no session is open. */
static void *freeze(void *arg)
{
    arena *a = arg;
    mla_status status = MLA_ERR_STATE;
    rng random = rng_of_seed(2);
    while (!atomic_load(&a->is_over) && atomic_load(&a->num_prepared) < NUM_WORKERS) {
        pause_ns(MOST_PAUSE_NS, &random);
    }
    while (status == MLA_ERR_STATE && !atomic_load(&a->is_over)) {
        status = mla_context_freeze(a->context, NULL);
        HOLD(a, status == MLA_OK || status == MLA_ERR_STATE);
    }
    return NULL;
}

static void race(bool is_frozen_on_the_way)
{
    rng random = rng_start("race");
    void *(*const others[])(void *) = {report, destroy_in_vain, freeze};
    const int num_others = is_frozen_on_the_way ? 3 : 2;
    pthread_t other[3];
    worker workers[NUM_WORKERS];
    mla_error err = {MLA_OK, 0, NULL, ""};
    arena a = {.context = rig_context(2, NULL), .caps = rig_caps()};
    a.plan = rig_plan(a.context, &a.caps);
    for (int i = 0; i < num_others; i++) {
        assert_int_equal(pthread_create(&other[i], NULL, others[i], &a), 0);
    }
    for (int i = 0; i < NUM_WORKERS; i++) {
        workers[i] = (worker){.arena = &a, .seed = rng_u64(&random)};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < NUM_WORKERS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    }
    atomic_store(&a.is_over, true);
    for (int i = 0; i < num_others; i++) {
        assert_int_equal(pthread_join(other[i], NULL), 0);
    }
    print_message("%d prepared, %d cancelled, %d found it frozen, %d reports\n",
                  atomic_load(&a.num_prepared), atomic_load(&a.num_cancelled),
                  atomic_load(&a.num_frozen), atomic_load(&a.num_reports));
    assert_string_equal(a.wrong, "");
    assert_true(atomic_load(&a.num_prepared) > 0);
    mla_plan_release(&a.plan);
    must(mla_context_destroy(&a.context, &err), &err);
}

static void everything_at_once_gives_everything_back(void **state)
{
    (void)state;
    race(false);
}

static void a_freeze_may_come_at_any_moment(void **state)
{
    (void)state;
    race(true);
}

/* The last one to let go frees the plan, whoever it is. */
static void *let_go(void *arg)
{
    worker *self = arg;
    mla_plan *plan = self->arena->plan;
    for (int i = 0; i < NUM_ROUNDS; i++) {
        mla_plan *again = mla_plan_retain(plan);
        mla_plan_release(&again);
    }
    mla_plan_release(&plan);
    return NULL;
}

static void the_last_of_many_threads_frees_the_plan(void **state)
{
    (void)state;
    mla_error err = {MLA_OK, 0, NULL, ""};
    for (int round = 0; round < NUM_ROUNDS; round++) {
        arena a = {.context = rig_context(1, NULL), .caps = rig_caps()};
        worker workers[NUM_WORKERS];
        a.plan = rig_plan(a.context, &a.caps);
        for (int i = 1; i < NUM_WORKERS; i++) {
            (void)mla_plan_retain(a.plan);
        }
        for (int i = 0; i < NUM_WORKERS; i++) {
            workers[i].arena = &a;
            assert_int_equal(pthread_create(&workers[i].thread, NULL, let_go, &workers[i]),
                             0);
        }
        mla_status status = MLA_ERR_STATE;
        while (status == MLA_ERR_STATE) { /* until the last has let go */
            status = mla_context_destroy(&a.context, &err);
        }
        must(status, &err);
        for (int i = 0; i < NUM_WORKERS; i++) {
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once_gives_everything_back),
        cmocka_unit_test(a_freeze_may_come_at_any_moment),
        cmocka_unit_test(the_last_of_many_threads_frees_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
