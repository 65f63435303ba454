/* Many threads submit and cancel beside the engine's, and others look on: each request ends
 * exactly once, and the numbers that are shown always add up. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/demo.h"
#include "support/random.h"
#include "support/tiny_model.h"

enum { SUBMITTERS = 3, EACH = 40, CONTEXT = 200, PAGES = 9 };

typedef struct sent {
    engine_request request;
    atomic_int num_ended;
    int64_t num_tokens;
} sent;

static demo opened;
static sent all[SUBMITTERS][EACH];
static atomic_int num_left;
static const int32_t prompt[CONTEXT] = {TINY_BOS, 1, 2, 3, 4, 5, 6, 7};

static bool count(engine_request *request, const engine_event *event)
{
    sent *self = request->user;
    self->num_tokens = event->index + 1;
    return true;
}

static void end_once(engine_request *request, const engine_result *result)
{
    sent *self = request->user;
    (void)result;
    atomic_fetch_add(&self->num_ended, 1);
    atomic_fetch_sub(&num_left, 1);
}

static void *submit_some(void *arg)
{
    sent *mine = arg;
    rng random = rng_of_seed((uint64_t)(mine - all[0]) + 1);
    for (int32_t i = 0; i < EACH; i++) {
        sent *self = &mine[i];
        self->request =
            (engine_request){.prompt = prompt,
                             .num_prompt = (int32_t)rng_between(&random, 1, 150),
                             .max_tokens = rng_between(&random, 1, 30),
                             .on_token = count,
                             .on_end = end_once,
                             .user = self};
        engine_submit(opened.engine, &self->request);
        if (i % 3 == 0) {
            engine_cancel(opened.engine, &mine[rng_between(&random, 0, i)].request);
        }
    }
    return NULL;
}

static void *look_on(void *arg)
{
    (void)arg;
    while (atomic_load(&num_left) > 0) {
        engine_stats stats;
        unsigned char map[PAGES];
        engine_stats_take(opened.engine, &stats);
        engine_page_map(opened.engine, map, PAGES);
        if (stats.pages_used + stats.pages_cached + stats.pages_free != PAGES ||
            stats.pages_reserved > stats.pages_cached + stats.pages_free) {
            atomic_store(&num_left, -1000); /* seen below */
        }
    }
    return NULL;
}

static void each_request_ends_once_whoever_sends_and_looks(void **state)
{
    (void)state;
    pthread_t threads[SUBMITTERS + 1];
    mla_error err = {0};
    tiny_model tiny = tiny_model_write();
    opened = demo_open(&(demo_options){.dir = tiny.dir,
                                       .threads = 2,
                                       .max_requests = 4,
                                       .max_context = CONTEXT,
                                       .kv_bytes = UINT64_C(64) * 2 * 80 * 4 * PAGES,
                                       .draft_tokens = 3,
                                       .has_prefix_cache = true});
    atomic_store(&num_left, SUBMITTERS * EACH);
    assert_int_equal(pthread_create(&threads[SUBMITTERS], NULL, look_on, NULL), 0);
    for (int32_t i = 0; i < SUBMITTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, submit_some, all[i]), 0);
    }
    while (atomic_load(&num_left) > 0) {
        bool is_idle = false;
        must(engine_step(opened.engine, &is_idle, &err), &err);
        if (is_idle && atomic_load(&num_left) > 0) {
            engine_wait(opened.engine);
        }
    }
    for (int32_t i = 0; i <= SUBMITTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&num_left), 0);
    for (int32_t i = 0; i < SUBMITTERS * EACH; i++) {
        assert_int_equal(atomic_load(&all[i / EACH][i % EACH].num_ended), 1);
    }
    demo_close(&opened);
    tiny_model_remove(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_ends_once_whoever_sends_and_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
