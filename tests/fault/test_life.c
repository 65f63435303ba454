/* Every allocation of a whole life fails, once and for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fault.h"
#include "support/rig.h"

typedef struct life {
    mla_context *context;
    mla_session *session;
    mla_plan *plan;
    mla_binding *binding;
    mla_buffers buffers;
    void *weights;
    int num_prepares; /* how often prepare is tried */
} life;

enum { WEIGHT_BYTES = 1000 };

static mla_status try_prepare(life *l)
{
    mla_status status = MLA_ERR_INTERNAL;
    for (int i = 0; i < l->num_prepares && status != MLA_OK; i++) {
        status = mla_session_prepare(l->session, NULL);
    }
    return status;
}

static mla_status plan_it(life *l)
{
    mla_caps caps = rig_caps();
    mla_caps other = caps;
    mla_ticket ticket;
    mla_ticket more;
    other.kv_format = MLA_KV_FP8;
    other.query_dtype = MLA_E4M3;
    mla_status status = mla_session_open(l->context, NULL, &l->session, NULL);
    for (int i = 0; i < 5 && status == MLA_OK; i++) { /* outgrows the first room */
        other.window = i;
        status = mla_session_add(l->session, &other, NULL, &more, NULL);
    }
    if (status == MLA_OK) {
        status = mla_session_add(l->session, &caps, NULL, &ticket, NULL);
    }
    if (status == MLA_OK) {
        status = try_prepare(l);
    }
    if (status == MLA_OK) {
        status = mla_session_publish(l->session, ticket, &l->plan, NULL);
    }
    mla_session_close(&l->session);
    return status;
}

/* The buffers are the caller's: from malloc, and no part of the experiment. */
static mla_status use_it(life *l)
{
    mla_requirements need = MLA_INIT(mla_requirements);
    mla_batch batch = MLA_INIT(mla_batch);
    mla_status status = mla_plan_requirements(l->plan, &need, NULL);
    if (status != MLA_OK) {
        return status;
    }
    l->buffers = rig_buffers(&need);
    status = mla_bind(l->plan, &l->buffers, &l->binding, NULL);
    if (status != MLA_OK) {
        return status;
    }
    *(int32_t *)(uintptr_t)l->buffers.query_starts.data = 0;
    status = mla_run(l->binding, &batch, (mla_stream){NULL}, NULL);
    for (int i = 0; i < 2 && status == MLA_OK; i++) {
        status = mla_record(l->binding, &batch, NULL);
    }
    return status == MLA_OK ? mla_replay(l->binding, (mla_stream){NULL}, NULL) : status;
}

static mla_status live(life *l, const mla_allocator *allocator)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = 2;
    options.allocator = allocator;
    mla_status status = mla_context_create(&options, &l->context, NULL);
    if (status == MLA_OK) {
        status = mla_memory_take(l->context, MLA_SPACE_HOST, MLA_FOR_WEIGHTS, WEIGHT_BYTES,
                                 64, &l->weights, NULL);
    }
    if (status == MLA_OK) {
        status = plan_it(l);
    }
    if (status == MLA_OK) {
        status = use_it(l);
    }
    return status == MLA_OK ? mla_context_freeze(l->context, NULL) : status;
}

static mla_status whole_life(const mla_allocator *allocator, void *arg)
{
    life l = {.num_prepares = *(const int *)arg};
    mla_status status = live(&l, allocator);
    mla_unbind(&l.binding);
    mla_plan_release(&l.plan);
    rig_buffers_free(&l.buffers);
    mla_memory_give(l.context, MLA_SPACE_HOST, MLA_FOR_WEIGHTS, WEIGHT_BYTES, l.weights);
    assert_int_equal(mla_context_destroy(&l.context, NULL), MLA_OK);
    return status;
}

static void no_allocation_of_a_life_is_unguarded(void **state)
{
    (void)state;
    int once = 1;
    int num_trials = fault_every("life", whole_life, &once, FAULT_MUST_FAIL);
    print_message("%d trials\n", num_trials);
    assert_true(num_trials > 100);
}

static void a_failed_prepare_may_be_tried_again(void **state)
{
    (void)state;
    int twice = 2;
    (void)fault_every("life with a second prepare", whole_life, &twice, FAULT_MAY_COPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_allocation_of_a_life_is_unguarded),
        cmocka_unit_test(a_failed_prepare_may_be_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
