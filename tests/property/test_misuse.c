/* Calls that a caller should not make: each is refused with a sentence or does nothing, and
 * the books stand as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/gpu.h"
#include "support/must.h"
#include "support/rig.h"

static mla_error last;

static void expect(mla_status got, mla_status wanted, const char *words)
{
    assert_int_equal(got, wanted);
    assert_int_equal(last.status, wanted);
    if (!strstr(last.message, words)) {
        fail_msg("\"%s\" does not say \"%s\"", last.message, words);
    }
    memset(&last, 0, sizeof last);
}

static void no_plan_is_retained_and_described_as_nothing(void **state)
{
    (void)state;
    char text[8] = "before";
    size_t needed = 0;
    mla_plan *none = NULL;
    assert_null(mla_plan_retain(NULL));
    mla_plan_describe(NULL, text, sizeof text, &needed);
    assert_string_equal(text, "");
    assert_int_equal(needed, 1);
    mla_plan_describe(NULL, NULL, sizeof text, NULL);
    mla_plan_release(&none);
    mla_plan_release(NULL);
}

static void a_description_without_a_text_is_counted(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    mla_context *context = rig_context(1, NULL);
    mla_plan *plan = rig_plan(context, &caps);
    size_t needed = 0;
    mla_plan_describe(plan, NULL, 100, &needed);
    assert_true(needed > 1);
    mla_plan_release(&plan);
    must(mla_context_destroy(&context, &last), &last);
}

/* In the library's own class and in one where memory was taken. */
static void only_what_was_booked_is_struck_out(void **state)
{
    (void)state;
    void *data = NULL;
    const mla_space host = MLA_SPACE_HOST;
    mla_context *context = rig_context(1, NULL);
    expect(mla_memory_book(context, host, MLA_FOR_CONTEXT, -1, &last), MLA_ERR_ARGUMENT,
           "0 are booked as context");
    must(mla_memory_take(context, host, MLA_FOR_KV, 99, 8, &data, &last), &last);
    must(mla_memory_book(context, host, MLA_FOR_KV, 7, &last), &last);
    expect(mla_memory_book(context, host, MLA_FOR_KV, -8, &last), MLA_ERR_ARGUMENT,
           "7 are booked as kv");
    must(mla_memory_book(context, host, MLA_FOR_KV, -3, &last), &last);
    must(mla_memory_book(context, host, MLA_FOR_KV, -4, &last), &last);
    expect(mla_memory_book(context, host, MLA_FOR_KV, -1, &last), MLA_ERR_ARGUMENT,
           "0 are booked");
    mla_memory_give(context, host, MLA_FOR_KV, 99, data);
    must(mla_context_destroy(&context, &last), &last);
}

static void giving_to_no_class_does_nothing(void **state)
{
    (void)state;
    void *data = NULL;
    const mla_space host = MLA_SPACE_HOST;
    mla_context *context = rig_context(1, NULL);
    must(mla_memory_take(context, host, MLA_FOR_KV, 99, 8, &data, &last), &last);
    mla_memory_give(context, host, MLA_NUM_PURPOSES, 99, data);
    mla_memory_give(context, host, (mla_purpose)-1, 99, data);
    mla_memory_give(context, host, MLA_FOR_PLAN, 99, data);
    mla_memory_give(context, MLA_NUM_SPACES, MLA_FOR_KV, 99, data);
    mla_memory_give(NULL, host, MLA_FOR_KV, 99, data);
    memset(data, 1, 99); /* it is still there */
    mla_memory_give(context, host, MLA_FOR_KV, 99, data);
    must(mla_context_destroy(&context, &last), &last);
}

static void append_refuses_rows_within_the_pool(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 1, 1);
    mla_stream none = {NULL};
    float rows[192] = {0};
    int64_t slot = 0;
    mla_append_args good = MLA_INIT(mla_append_args);
    good.rows = rig_lend(rows, sizeof rows);
    good.slots = rig_lend(&slot, sizeof slot);
    good.kv_pool.data = (void *)(uintptr_t)r.bound.kv_pool.data;
    good.kv_pool.bytes = r.bound.kv_pool.bytes;
    good.num_rows = 1;
    good.rows_dtype = MLA_F32;
    must(mla_append(r.plan, &good, none, &last), &last);
    mla_append_args bad = good;
    bad.rows.data = (const char *)good.kv_pool.data + 4;
    expect(mla_append(r.plan, &bad, none, &last), MLA_ERR_ARGUMENT, "rows (768 bytes");
    bad = good;
    bad.slots.data = (const char *)good.kv_pool.data + good.kv_pool.bytes - 8;
    expect(mla_append(r.plan, &bad, none, &last), MLA_ERR_ARGUMENT, "slots (8 bytes");
    bad = good;
    bad.kv_pool.bytes = SIZE_MAX;
    expect(mla_append(r.plan, &bad, none, &last), MLA_ERR_ARGUMENT, "more than memory");
    rig_fetch_pool(&r); /* waits */
    rig_lend_end(good.rows);
    rig_lend_end(good.slots);
    rig_close(&r);
}

/* Slots that are none write nowhere, and no row at all needs no rows. */
static void append_leaves_the_pool_where_slots_are_none(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 1, 1);
    const int64_t past = caps.num_pages * caps.page_tokens;
    const int64_t slots[] = {-1, INT64_MIN, past, INT64_MAX, past - 1};
    const size_t width = 192;
    const size_t row_bytes = mla_kv_row_bytes(caps.kv_format, 128, 64);
    const size_t pool_bytes = r.need.kv_pool.bytes;
    const unsigned char *pool = r.buffers.kv_pool.data;
    float *rows = calloc(5 * width, sizeof *rows);
    unsigned char *before = malloc(pool_bytes);
    assert_true(rows && before);
    mla_append_args args = MLA_INIT(mla_append_args);
    args.kv_pool.data = (void *)(uintptr_t)r.bound.kv_pool.data;
    args.kv_pool.bytes = pool_bytes;
    args.rows_dtype = MLA_F32;
    memcpy(before, pool, pool_bytes);
    must(mla_append(r.plan, &args, (mla_stream){NULL}, &last), &last);
    rig_fetch_pool(&r);
    assert_memory_equal(before, pool, pool_bytes);
    args.rows = rig_lend(rows, 5 * width * sizeof *rows);
    args.slots = rig_lend(slots, sizeof slots);
    args.num_rows = 5;
    must(mla_append(r.plan, &args, (mla_stream){NULL}, &last), &last);
    rig_fetch_pool(&r);
    assert_memory_equal(before, pool, pool_bytes - row_bytes);
    for (size_t i = 0; i < row_bytes; i++) { /* a row of zeros is zeros in every format */
        assert_int_equal(pool[pool_bytes - row_bytes + i], 0);
    }
    rig_lend_end(args.rows);
    rig_lend_end(args.slots);
    free(before);
    free(rows);
    rig_close(&r);
}

static void no_object_is_refused_everywhere(void **state)
{
    (void)state;
    mla_stream none = {NULL};
    mla_batch batch = MLA_INIT(mla_batch);
    mla_append_args args = MLA_INIT(mla_append_args);
    mla_memory_report report = MLA_INIT(mla_memory_report);
    mla_requirements need = MLA_INIT(mla_requirements);
    mla_buffers buffers = MLA_INIT(mla_buffers);
    mla_binding *binding = NULL;
    mla_plan *plan = NULL;
    const mla_status argument = MLA_ERR_ARGUMENT;
    expect(mla_run(NULL, &batch, none, &last), argument, "binding is NULL");
    expect(mla_record(NULL, &batch, &last), argument, "binding is NULL");
    expect(mla_replay(NULL, none, &last), argument, "binding is NULL");
    expect(mla_poll(NULL, &last), argument, "binding is NULL");
    expect(mla_append(NULL, &args, none, &last), argument, "plan is NULL");
    expect(mla_bind(NULL, &buffers, &binding, &last), argument, "NULL");
    expect(mla_plan_requirements(NULL, &need, &last), argument, "plan is NULL");
    expect(mla_session_estimate(NULL, &report, &last), argument, "session is NULL");
    expect(mla_session_prepare(NULL, &last), argument, "session is NULL");
    expect(mla_session_publish(NULL, 0, &plan, &last), argument, "NULL");
    expect(mla_context_memory(NULL, &report, &last), argument, "context is NULL");
    expect(mla_context_freeze(NULL, &last), argument, "context is NULL");
    expect(mla_query_device(MLA_BACKEND_CPU, 0, NULL, &last), argument, "NULL");
    expect(mla_memory_book(NULL, MLA_SPACE_HOST, MLA_FOR_KV, 1, &last), argument, "NULL");
    mla_unbind(&binding);
    mla_unbind(NULL);
    mla_session_close(NULL);
    mla_memory_give(NULL, MLA_SPACE_HOST, MLA_FOR_KV, 1, NULL);
}

/* A cancel counts for one prepare, and what was prepared before it stands. */
static void a_cancel_is_spent_by_one_prepare(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    mla_context *context = rig_context(1, NULL);
    mla_session *session = NULL;
    mla_ticket ticket[2];
    mla_plan *plan[3] = {NULL};
    must(mla_session_open(context, NULL, &session, &last), &last);
    must(mla_session_add(session, &caps, NULL, &ticket[0], &last), &last);
    must(mla_session_prepare(session, &last), &last);
    caps.num_heads = 3;
    must(mla_session_add(session, &caps, NULL, &ticket[1], &last), &last);
    mla_session_cancel(session);
    mla_session_cancel(session);
    expect(mla_session_prepare(session, &last), MLA_ERR_CANCELLED, "cancelled");
    expect(mla_session_publish(session, ticket[1], &plan[0], &last), MLA_ERR_STATE,
           "ticket 1");
    must(mla_session_publish(session, ticket[0], &plan[0], &last), &last);
    must(mla_session_prepare(session, &last), &last);
    must(mla_session_prepare(session, &last), &last); /* of nothing new */
    must(mla_session_publish(session, ticket[0], &plan[1], &last), &last);
    must(mla_session_publish(session, ticket[1], &plan[2], &last), &last);
    assert_ptr_equal(plan[0], plan[1]);
    mla_session_close(&session);
    for (int i = 0; i < 3; i++) {
        expect(mla_context_destroy(&context, &last), MLA_ERR_STATE, "alive");
        mla_plan_release(&plan[i]);
    }
    must(mla_context_destroy(&context, &last), &last);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_is_retained_and_described_as_nothing),
        cmocka_unit_test(a_description_without_a_text_is_counted),
        cmocka_unit_test(only_what_was_booked_is_struck_out),
        cmocka_unit_test(giving_to_no_class_does_nothing),
        cmocka_unit_test(append_refuses_rows_within_the_pool),
        cmocka_unit_test(append_leaves_the_pool_where_slots_are_none),
        cmocka_unit_test(no_object_is_refused_everywhere),
        cmocka_unit_test(a_cancel_is_spent_by_one_prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_suite("misuse", run_suite);
}
