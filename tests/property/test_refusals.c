/* Every documented error of mla.h that needs more than a number out of range: each refusal
 * leaves the out parameter alone and says what was wrong with its values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/session.h"
#include "support/gpu.h"
#include "support/must.h"
#include "support/rig.h"

static mla_error last;

#define EXPECT(status_wanted, words, call)                                                 \
    do {                                                                                   \
        last.message[0] = '\0';                                                            \
        assert_int_equal((call), (status_wanted));                                         \
        if (!strstr(last.message, (words))) {                                              \
            fail_msg("\"%s\" does not say \"%s\"", last.message, (words));                 \
        }                                                                                  \
    } while (0)

static mla_context_options cpu_options(void)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = 1;
    return options;
}

static void *never(void *user, size_t bytes, size_t align, mla_space space,
                   mla_purpose purpose)
{
    (void)user;
    (void)bytes;
    (void)align;
    (void)space;
    (void)purpose;
    return NULL;
}

static void a_context_refuses_impossible_options(void **state)
{
    (void)state;
    mla_context *context = NULL;
    mla_context_options options = cpu_options();
    EXPECT(MLA_ERR_ARGUMENT, "NULL", mla_context_create(NULL, &context, &last));
    EXPECT(MLA_ERR_ARGUMENT, "out is NULL", mla_context_create(&options, NULL, &last));
    options.backend = (mla_backend)7;
    EXPECT(MLA_ERR_ARGUMENT, "backend is 7", mla_context_create(&options, &context, &last));
    options.backend = MLA_BACKEND_CUDA;
    options.device = 4096; /* which no machine has */
    EXPECT(MLA_ERR_UNSUPPORTED, "CUDA", mla_context_create(&options, &context, &last));
    options = cpu_options();
    options.device = 1;
    EXPECT(MLA_ERR_UNSUPPORTED, "is 1", mla_context_create(&options, &context, &last));
    options = cpu_options();
    options.num_threads = -1;
    EXPECT(MLA_ERR_ARGUMENT, "is -1", mla_context_create(&options, &context, &last));
    options.num_threads = 1 << 20;
    EXPECT(MLA_ERR_ARGUMENT, "1048576", mla_context_create(&options, &context, &last));
    options = cpu_options();
    options.isa_mask = MLA_ISA_SM90A;
    EXPECT(MLA_ERR_UNSUPPORTED, "0x200", mla_context_create(&options, &context, &last));
    options = cpu_options();
    options.reserved = 3;
    EXPECT(MLA_ERR_ARGUMENT, "is 3", mla_context_create(&options, &context, &last));
    options = cpu_options();
    options.log_level = (mla_log_level)9;
    EXPECT(MLA_ERR_ARGUMENT, "is 9", mla_context_create(&options, &context, &last));
    options = cpu_options();
    options.memory_limit_bytes = 100;
    EXPECT(MLA_ERR_NO_MEMORY, "limit of 100",
           mla_context_create(&options, &context, &last));
    options = cpu_options();
    mla_allocator allocator = MLA_INIT(mla_allocator);
    allocator.alloc = never;
    options.allocator = &allocator;
    EXPECT(MLA_ERR_ARGUMENT, "release", mla_context_create(&options, &context, &last));
    assert_null(context);
    EXPECT(MLA_ERR_ARGUMENT, "NULL", mla_context_destroy(NULL, &last));
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK); /* of NULL */
}

static void a_context_outlives_what_was_made_from_it(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_caps caps = rig_caps();
    void *data = NULL;
    mla_session *session = NULL;
    assert_int_equal(mla_session_open(context, NULL, &session, NULL), MLA_OK);
    EXPECT(MLA_ERR_STATE, "1 sessions", mla_context_destroy(&context, &last));
    EXPECT(MLA_ERR_STATE, "1 sessions", mla_context_freeze(context, &last));
    mla_session_close(&session);
    mla_plan *plan = rig_plan(context, &caps);
    EXPECT(MLA_ERR_STATE, "alive", mla_context_destroy(&context, &last));
    mla_plan_release(&plan);
    assert_int_equal(
        mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_KV, 77, 64, &data, NULL), MLA_OK);
    EXPECT(MLA_ERR_STATE, "77 bytes of host memory for kv",
           mla_context_destroy(&context, &last));
    mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_KV, 77, data);
    assert_int_equal(
        mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_CONTEXT, 3, 64, &data, NULL),
        MLA_OK);
    EXPECT(MLA_ERR_STATE, "3 bytes of host memory for context",
           mla_context_destroy(&context, &last));
    mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_CONTEXT, 3, data);
    assert_non_null(context);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
    assert_null(context);
}

static void the_books_refuse_what_is_not_a_callers(void **state)
{
    (void)state;
    mla_context_options options = cpu_options();
    mla_context *c = NULL;
    options.memory_limit_bytes = 1 << 30;
    assert_int_equal(mla_context_create(&options, &c, NULL), MLA_OK);
    void *data = NULL;
    const mla_space host = MLA_SPACE_HOST;
    EXPECT(MLA_ERR_ARGUMENT, "bytes is 0",
           mla_memory_take(c, host, MLA_FOR_KV, 0, 64, &data, &last));
    EXPECT(MLA_ERR_ARGUMENT, "align_bytes is 48",
           mla_memory_take(c, host, MLA_FOR_KV, 8, 48, &data, &last));
    EXPECT(MLA_ERR_ARGUMENT, "align_bytes is 8192",
           mla_memory_take(c, host, MLA_FOR_KV, 8, 8192, &data, &last));
    EXPECT(MLA_ERR_ARGUMENT, "space is 2",
           mla_memory_take(c, MLA_SPACE_DEVICE, MLA_FOR_KV, 8, 8, &data, &last));
    EXPECT(MLA_ERR_ARGUMENT, "purpose is 1",
           mla_memory_take(c, host, MLA_FOR_SESSION, 8, 8, &data, &last));
    EXPECT(MLA_ERR_ARGUMENT, "purpose is 12",
           mla_memory_take(c, host, MLA_NUM_PURPOSES, 8, 8, &data, &last));
    EXPECT(MLA_ERR_NO_MEMORY, "kv",
           mla_memory_take(c, host, MLA_FOR_KV, PTRDIFF_MAX, 8, &data, &last));
    EXPECT(MLA_ERR_ARGUMENT, "bytes is 0", mla_memory_book(c, host, MLA_FOR_KV, 0, &last));
    EXPECT(MLA_ERR_ARGUMENT, "strike", mla_memory_book(c, host, MLA_FOR_KV, -1, &last));
    EXPECT(MLA_ERR_ARGUMENT, "purpose is 2",
           mla_memory_book(c, host, MLA_FOR_PLAN, 1, &last));
    assert_int_equal(mla_memory_book(c, host, MLA_FOR_WEIGHTS, 1000, NULL), MLA_OK);
    mla_memory_report report = MLA_INIT(mla_memory_report);
    assert_int_equal(mla_context_memory(c, &report, NULL), MLA_OK);
    assert_int_equal(report.cell[host][MLA_FOR_WEIGHTS].now_bytes, 1000);
    assert_int_equal(mla_memory_book(c, host, MLA_FOR_WEIGHTS, -1000, NULL), MLA_OK);
    assert_null(data);
    assert_int_equal(mla_context_destroy(&c, NULL), MLA_OK);
}

static void a_session_refuses_what_it_cannot_prepare(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = NULL;
    mla_ticket ticket = -7;
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_caps caps = rig_caps();
    options.compile_workers = -2;
    EXPECT(MLA_ERR_ARGUMENT, "is -2", mla_session_open(context, &options, &session, &last));
    options = (mla_session_options)MLA_INIT(mla_session_options);
    options.reserved = 1;
    EXPECT(MLA_ERR_ARGUMENT, "is 1", mla_session_open(context, &options, &session, &last));
    EXPECT(MLA_ERR_ARGUMENT, "NULL", mla_session_open(NULL, NULL, &session, &last));
    assert_null(session);
    assert_int_equal(mla_session_open(context, NULL, &session, NULL), MLA_OK);
    EXPECT(MLA_ERR_UNSUPPORTED, "context-parallel",
           mla_session_add(session, &caps, (mla_comm *)(uintptr_t)8, &ticket, &last));
    caps.num_heads = 0;
    EXPECT(MLA_ERR_ARGUMENT, "num_heads",
           mla_session_add(session, &caps, NULL, &ticket, &last));
    EXPECT(MLA_ERR_ARGUMENT, "NULL", mla_session_add(session, NULL, NULL, &ticket, &last));
    assert_int_equal(ticket, -7);
    mla_session_close(&session);
    mla_session_close(&session); /* of NULL */
    mla_session_cancel(NULL);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

/* Each buffer of a binding, by its place in mla_buffers: `in` and `out` are alike. */
typedef struct buffer {
    size_t offset, need_offset;
    const char *name;
} buffer;

#define BUFFER(field)                                                                      \
    {                                                                                      \
        offsetof(mla_buffers, field), offsetof(mla_requirements, field), #field            \
    }
static const buffer all_buffers[] = {
    BUFFER(kv_pool),      BUFFER(query),  BUFFER(block_table), BUFFER(context_lens),
    BUFFER(query_starts), BUFFER(output), BUFFER(lse),         BUFFER(workspace),
};

static mla_out *at(mla_buffers *buffers, const buffer *b)
{
    return (mla_out *)(void *)((char *)buffers + b->offset);
}

static void bind_refuses_a_buffer_one_byte_short(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 2, 1);
    mla_binding *binding = NULL;
    for (size_t i = 0; i < sizeof all_buffers / sizeof all_buffers[0]; i++) {
        mla_buffers bad = r.bound;
        mla_need need;
        char words[96];
        memcpy(&need, (const char *)&r.need + all_buffers[i].need_offset, sizeof need);
        assert_true(need.bytes > 1 && need.align_bytes >= 4 &&
                    need.space == (rig_is_on_gpu ? MLA_SPACE_DEVICE : MLA_SPACE_HOST));
        at(&bad, &all_buffers[i])->bytes = need.bytes - 1;
        (void)snprintf(words, sizeof words, "%s has %zu bytes, and needs %zu",
                       all_buffers[i].name, need.bytes - 1, need.bytes);
        EXPECT(MLA_ERR_BUFFER_SMALL, words, mla_bind(r.plan, &bad, &binding, &last));
        bad = r.bound;
        at(&bad, &all_buffers[i])->data = NULL;
        EXPECT(MLA_ERR_ARGUMENT, "is NULL", mla_bind(r.plan, &bad, &binding, &last));
        bad = r.bound;
        at(&bad, &all_buffers[i])->data = (char *)at(&bad, &all_buffers[i])->data + 2;
        EXPECT(MLA_ERR_ARGUMENT, "multiple of", mla_bind(r.plan, &bad, &binding, &last));
        bad = r.bound;
        at(&bad, &all_buffers[i])->bytes = SIZE_MAX;
        EXPECT(MLA_ERR_ARGUMENT, "more than memory",
               mla_bind(r.plan, &bad, &binding, &last));
    }
    assert_null(binding);
    rig_close(&r);
}

static void bind_refuses_buffers_that_overlap(void **state)
{
    (void)state;
    enum { NUM = sizeof all_buffers / sizeof all_buffers[0] };
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 1, 1);
    mla_binding *binding = NULL;
    for (size_t i = 0; i < NUM; i++) {
        for (size_t j = 0; j < NUM; j++) {
            mla_buffers bad = r.bound;
            mla_out *a = at(&bad, &all_buffers[i]);
            const mla_out *b = at(&bad, &all_buffers[j]);
            if (i == j) {
                continue;
            }
            a->data = b->data; /* of another's size, which is enough to be caught */
            EXPECT(MLA_ERR_ARGUMENT, "overlaps", mla_bind(r.plan, &bad, &binding, &last));
        }
    }
    assert_null(binding);
    rig_close(&r);
}

static void bind_wants_exactly_the_scales_of_its_formats(void **state)
{
    (void)state;
    float one = 1.0F;
    mla_caps caps = rig_caps();
    rig plain = rig_open(&caps, 1, 1);
    mla_binding *binding = NULL;
    mla_buffers bad = plain.bound;
    bad.kv_scale = (mla_in){&one, sizeof one};
    EXPECT(MLA_ERR_ARGUMENT, "kv_scale has 4", mla_bind(plain.plan, &bad, &binding, &last));
    bad = plain.bound;
    bad.query_scale = (mla_in){&one, sizeof one};
    EXPECT(MLA_ERR_ARGUMENT, "query_scale has 4",
           mla_bind(plain.plan, &bad, &binding, &last));
    rig_close(&plain);
    caps.kv_format = MLA_KV_FP8;
    caps.query_dtype = MLA_E4M3;
    rig scaled = rig_open(&caps, 1, 1);
    bad = scaled.bound;
    bad.kv_scale = (mla_in){NULL, 0};
    EXPECT(MLA_ERR_ARGUMENT, "kv_scale is NULL",
           mla_bind(scaled.plan, &bad, &binding, &last));
    bad = scaled.bound;
    bad.query_scale.bytes = 3;
    EXPECT(MLA_ERR_BUFFER_SMALL, "query_scale has 3",
           mla_bind(scaled.plan, &bad, &binding, &last));
    assert_null(binding);
    rig_close(&scaled);
}

static void a_run_refuses_batches_beyond_its_plan(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(3, 8, 100);
    caps.max_rows_per_request = 5;
    rig r = rig_open(&caps, 1, 1);
    mla_stream none = {NULL};
    const rig_request requests[] = {{1, 20, 2}, {2, 9, 3}};
    EXPECT(MLA_ERR_STATE, "recorded", mla_replay(r.binding, none, &last));
    rig_load(&r, requests, 2);
    mla_batch good = r.batch;
    mla_batch bad = good;
    bad.num_requests = 4;
    EXPECT(MLA_ERR_ARGUMENT, "num_requests is 4", mla_run(r.binding, &bad, none, &last));
    bad.num_requests = -1;
    EXPECT(MLA_ERR_ARGUMENT, "is -1", mla_record(r.binding, &bad, &last));
    bad = good;
    bad.num_query_rows = 9;
    EXPECT(MLA_ERR_ARGUMENT, "is 9", mla_run(r.binding, &bad, none, &last));
    bad = good;
    bad.max_context_tokens = 101;
    EXPECT(MLA_ERR_ARGUMENT, "is 101", mla_run(r.binding, &bad, none, &last));
    must(mla_run(r.binding, &good, none, &last), &last);
    mla_batch nothing = MLA_INIT(mla_batch);
    must(mla_run(r.binding, &nothing, none, &last), &last);
    rig_close(&r);
}

/* Where they can be read before anything runs. */
static void a_run_on_a_cpu_refuses_starts_that_break_their_rule(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(3, 8, 100);
    caps.max_rows_per_request = 5;
    rig r = rig_open(&caps, 1, 1);
    mla_stream none = {NULL};
    int32_t *starts = (int32_t *)(uintptr_t)r.buffers.query_starts.data;
    const rig_request requests[] = {{1, 20, 2}, {2, 9, 3}};
    rig_load(&r, requests, 2);
    mla_batch good = r.batch;
    starts[0] = 1;
    EXPECT(MLA_ERR_ARGUMENT, "[0] is 1", mla_run(r.binding, &good, none, &last));
    starts[0] = 0;
    starts[1] = -1;
    EXPECT(MLA_ERR_ARGUMENT, "[1] is -1", mla_run(r.binding, &good, none, &last));
    starts[1] = 6;
    EXPECT(MLA_ERR_ARGUMENT, "[1] is 6", mla_run(r.binding, &good, none, &last));
    starts[1] = 1;
    starts[2] = 4;
    EXPECT(MLA_ERR_ARGUMENT, "[2] is 4", mla_run(r.binding, &good, none, &last));
    starts[2] = 5;
    assert_int_equal(mla_run(r.binding, &good, none, NULL), MLA_OK);
    assert_int_equal(mla_record(r.binding, &good, NULL), MLA_OK);
    starts[2] = INT32_MAX;
    EXPECT(MLA_ERR_ARGUMENT, "2147483647", mla_replay(r.binding, none, &last));
    rig_close(&r);
}

static void append_refuses_what_it_cannot_write(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    caps.kv_format = MLA_KV_FP8;
    rig r = rig_open(&caps, 1, 1);
    float rows[192] = {0};
    int64_t slot = 0;
    mla_stream none = {NULL};
    mla_append_args good = MLA_INIT(mla_append_args);
    good.rows = rig_lend(rows, sizeof rows);
    good.slots = rig_lend(&slot, sizeof slot);
    good.kv_scale = r.bound.kv_scale;
    good.kv_pool.data = (void *)(uintptr_t)r.bound.kv_pool.data;
    good.kv_pool.bytes = r.bound.kv_pool.bytes;
    good.num_rows = 1;
    good.rows_dtype = MLA_F32;
    assert_int_equal(mla_append(r.plan, &good, none, NULL), MLA_OK);
    mla_append_args bad = good;
    bad.rows_dtype = MLA_E4M3;
    EXPECT(MLA_ERR_ARGUMENT, "rows_dtype is 3", mla_append(r.plan, &bad, none, &last));
    bad = good;
    bad.num_rows = -1;
    EXPECT(MLA_ERR_ARGUMENT, "num_rows is -1", mla_append(r.plan, &bad, none, &last));
    bad.num_rows = INT64_MAX;
    EXPECT(MLA_ERR_ARGUMENT, "num_rows is 92233", mla_append(r.plan, &bad, none, &last));
    bad = good;
    bad.rows.bytes--;
    EXPECT(MLA_ERR_BUFFER_SMALL, "rows has 767", mla_append(r.plan, &bad, none, &last));
    bad = good;
    bad.slots.bytes--;
    EXPECT(MLA_ERR_BUFFER_SMALL, "slots has 7", mla_append(r.plan, &bad, none, &last));
    bad = good;
    bad.kv_pool.bytes--;
    EXPECT(MLA_ERR_BUFFER_SMALL, "kv_pool has", mla_append(r.plan, &bad, none, &last));
    bad = good;
    bad.kv_scale = (mla_in){NULL, 0};
    EXPECT(MLA_ERR_ARGUMENT, "kv_scale is NULL", mla_append(r.plan, &bad, none, &last));
    bad = good;
    bad.rows.data = (const char *)good.rows.data + 1;
    EXPECT(MLA_ERR_ARGUMENT, "rows lies", mla_append(r.plan, &bad, none, &last));
    bad = good;
    bad.reserved = 1;
    EXPECT(MLA_ERR_ARGUMENT, "reserved is 1", mla_append(r.plan, &bad, none, &last));
    rig_fetch_pool(&r); /* waits */
    rig_lend_end(good.rows);
    rig_lend_end(good.slots);
    rig_close(&r);
}

static void after_the_freeze_nothing_is_made(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 1, 1);
    mla_session *session = NULL;
    mla_binding *binding = NULL;
    void *data = NULL;
    const rig_request request = {1, 20, 1};
    rig_load(&r, &request, 1);
    assert_int_equal(mla_context_freeze(r.context, NULL), MLA_OK);
    assert_int_equal(mla_context_freeze(r.context, NULL), MLA_OK);
    EXPECT(MLA_ERR_FROZEN, rig_is_on_gpu ? "session on cuda:" : "session on cpu:",
           mla_session_open(r.context, NULL, &session, &last));
    EXPECT(MLA_ERR_FROZEN, rig_is_on_gpu ? "binding of [cuda:" : "binding of [cpu:",
           mla_bind(r.plan, &r.bound, &binding, &last));
    EXPECT(MLA_ERR_FROZEN,
           rig_is_on_gpu ? "recorded batch of [cuda:" : "recorded batch of [cpu:",
           mla_record(r.binding, &r.batch, &last));
    EXPECT(MLA_ERR_FROZEN, "kv needs 99 bytes",
           mla_memory_take(r.context, MLA_SPACE_HOST, MLA_FOR_KV, 99, 64, &data, &last));
    EXPECT(MLA_ERR_FROZEN, "kv needs 99 bytes",
           mla_memory_book(r.context, MLA_SPACE_HOST, MLA_FOR_KV, 99, &last));
    assert_int_equal(
        mla_memory_take(r.context, MLA_SPACE_HOST, MLA_FOR_SERVER, 99, 64, &data, NULL),
        MLA_OK);
    mla_memory_give(r.context, MLA_SPACE_HOST, MLA_FOR_SERVER, 99, data);
    assert_null(session);
    assert_null(binding);
    rig_run(&r);
    rig_close(&r);
}

static void a_plan_describes_itself(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_caps caps = rig_caps();
    mla_plan *plan = rig_plan(context, &caps);
    char text[256];
    char cut[10];
    size_t needed = 0;
    mla_plan_describe(plan, text, sizeof text, &needed);
    assert_int_equal(needed, strlen(text) + 1);
    assert_true(needed <= MLAI_PLAN_LINE_BYTES);
    assert_non_null(strstr(text, rig_is_on_gpu ? " decode h4 d128+64 p16 bf16 "
                                               : " decode h4 d128+64 p16 f32 "));
    mla_plan_describe(plan, cut, sizeof cut, &needed);
    assert_int_equal(needed, strlen(text) + 1);
    assert_memory_equal(cut, text, sizeof cut - 1);
    assert_int_equal(cut[sizeof cut - 1], '\0');
    mla_plan_describe(plan, NULL, 0, &needed);
    mla_plan_describe(plan, text, sizeof text, NULL);
    mla_plan_release(&plan);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

/* What the CPU's reference needs and no GPU kernel has. */
static void a_gpu_refuses_f32_by_name(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = NULL;
    mla_ticket ticket = -7;
    mla_caps caps = rig_caps();
    must(mla_session_open(context, NULL, &session, &last), &last);
    caps.kv_format = MLA_KV_F32;
    EXPECT(MLA_ERR_UNSUPPORTED, "kv_format f32",
           mla_session_add(session, &caps, NULL, &ticket, &last));
    caps = rig_caps();
    caps.query_dtype = MLA_F32;
    EXPECT(MLA_ERR_UNSUPPORTED, "query_dtype is f32",
           mla_session_add(session, &caps, NULL, &ticket, &last));
    caps = rig_caps();
    caps.latent_dim = 2048;
    EXPECT(MLA_ERR_UNSUPPORTED, "latent_dim is 2048",
           mla_session_add(session, &caps, NULL, &ticket, &last));
    assert_int_equal(ticket, -7);
    mla_session_close(&session);
    must(mla_context_destroy(&context, &last), &last);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_outlives_what_was_made_from_it),
        cmocka_unit_test(a_session_refuses_what_it_cannot_prepare),
        cmocka_unit_test(bind_refuses_a_buffer_one_byte_short),
        cmocka_unit_test(bind_refuses_buffers_that_overlap),
        cmocka_unit_test(bind_wants_exactly_the_scales_of_its_formats),
        cmocka_unit_test(a_run_refuses_batches_beyond_its_plan),
        cmocka_unit_test(append_refuses_what_it_cannot_write),
        cmocka_unit_test(after_the_freeze_nothing_is_made),
        cmocka_unit_test(a_plan_describes_itself),
    };
    const struct CMUnitTest on_cpu[] = {
        cmocka_unit_test(a_context_refuses_impossible_options),
        cmocka_unit_test(the_books_refuse_what_is_not_a_callers),
        cmocka_unit_test(a_run_on_a_cpu_refuses_starts_that_break_their_rule),
    };
    const struct CMUnitTest on_gpu[] = {
        cmocka_unit_test(a_gpu_refuses_f32_by_name),
    };
    int num_failed = rig_is_on_gpu ? cmocka_run_group_tests(on_gpu, NULL, NULL)
                                   : cmocka_run_group_tests(on_cpu, NULL, NULL);
    return num_failed + cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_suite("refusals", run_suite);
}
