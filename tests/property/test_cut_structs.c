/* A struct cut after its last field that has no default works as if the rest were 0;
 * anything shorter is refused; a longer one is accepted if its unknown tail is 0; an out
 * struct is filled as far as it reaches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/rig.h"

#define END(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* What each public call does with a struct of a given size, the rest of which is 0xff. */
typedef mla_status (*use)(size_t struct_size, unsigned char *bytes);

static mla_context *context;
static mla_plan *plan;
static mla_binding *binding;
static rig one;

static mla_status use_context_options(size_t size, unsigned char *bytes)
{
    mla_context_options full = MLA_INIT(mla_context_options);
    full.backend = MLA_BACKEND_CPU;
    memcpy(bytes, &full, size < sizeof full ? size : sizeof full);
    memcpy(bytes, &size, sizeof size);
    mla_context *made = NULL;
    mla_status status = mla_context_create((const void *)bytes, &made, NULL);
    return status == MLA_OK ? mla_context_destroy(&made, NULL) : status;
}

static mla_status use_caps(size_t size, unsigned char *bytes)
{
    mla_caps full = rig_caps();
    memcpy(bytes, &full, size < sizeof full ? size : sizeof full);
    memcpy(bytes, &size, sizeof size);
    mla_session *session = NULL;
    mla_ticket ticket;
    assert_int_equal(mla_session_open(context, NULL, &session, NULL), MLA_OK);
    mla_status status = mla_session_add(session, (const void *)bytes, NULL, &ticket, NULL);
    mla_session_close(&session);
    return status;
}

static mla_status use_session_options(size_t size, unsigned char *bytes)
{
    mla_session_options full = MLA_INIT(mla_session_options);
    memcpy(bytes, &full, size < sizeof full ? size : sizeof full);
    memcpy(bytes, &size, sizeof size);
    mla_session *session = NULL;
    mla_status status = mla_session_open(context, (const void *)bytes, &session, NULL);
    mla_session_close(&session);
    return status;
}

static mla_status use_buffers(size_t size, unsigned char *bytes)
{
    memcpy(bytes, &one.buffers, size < sizeof one.buffers ? size : sizeof one.buffers);
    memcpy(bytes, &size, sizeof size);
    mla_binding *made = NULL;
    mla_status status = mla_bind(plan, (const void *)bytes, &made, NULL);
    mla_unbind(&made);
    return status;
}

static mla_status use_batch(size_t size, unsigned char *bytes)
{
    memcpy(bytes, &one.batch, size < sizeof one.batch ? size : sizeof one.batch);
    memcpy(bytes, &size, sizeof size);
    return mla_run(binding, (const void *)bytes, (mla_stream){NULL}, NULL);
}

static mla_status use_append_args(size_t size, unsigned char *bytes)
{
    mla_append_args full = MLA_INIT(mla_append_args);
    full.kv_pool.data = (void *)(uintptr_t)one.buffers.kv_pool.data;
    full.kv_pool.bytes = one.buffers.kv_pool.bytes;
    full.rows_dtype = MLA_F32;
    memcpy(bytes, &full, size < sizeof full ? size : sizeof full);
    memcpy(bytes, &size, sizeof size);
    return mla_append(plan, (const void *)bytes, (mla_stream){NULL}, NULL);
}

static const struct {
    const char *name;
    use call;
    size_t required, full;
} structs[] = {
    {"context_options", use_context_options, END(mla_context_options, backend),
     sizeof(mla_context_options)},
    {"caps", use_caps, END(mla_caps, num_pages), sizeof(mla_caps)},
    {"session_options", use_session_options, END(mla_session_options, struct_size),
     sizeof(mla_session_options)},
    {"buffers", use_buffers, END(mla_buffers, workspace), sizeof(mla_buffers)},
    {"batch", use_batch, END(mla_batch, max_context_tokens), sizeof(mla_batch)},
    {"append_args", use_append_args, END(mla_append_args, rows_dtype),
     sizeof(mla_append_args)},
};

enum { ROOM = 1024, MAX_TAIL = 64 };

/* 0xff behind the struct's own end would be read as a number that is refused. */
static mla_status try_size(int i, size_t size)
{
    _Alignas(16) unsigned char bytes[ROOM];
    memset(bytes, 0xff, sizeof bytes);
    return structs[i].call(size, bytes);
}

static void cut_structs_work_down_to_what_is_required(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof structs / sizeof structs[0]); i++) {
        for (size_t size = 0; size <= structs[i].full; size++) {
            mla_status want = size < structs[i].required ? MLA_ERR_ARGUMENT : MLA_OK;
            if (try_size(i, size) != want) {
                fail_msg("a mla_%s of %zu bytes, where %zu of %zu are required",
                         structs[i].name, size, structs[i].required, structs[i].full);
            }
        }
    }
}

static void longer_structs_work_if_their_tail_is_zero(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof structs / sizeof structs[0]); i++) {
        _Alignas(16) unsigned char bytes[ROOM];
        memset(bytes, 0, sizeof bytes);
        assert_int_equal(structs[i].call(structs[i].full + MAX_TAIL, bytes), MLA_OK);
        assert_int_equal(try_size(i, structs[i].full + 1), MLA_ERR_ARGUMENT);
    }
}

static mla_status fill_info(void *out)
{
    return mla_query_device(MLA_BACKEND_CPU, 0, out, NULL);
}

static mla_status fill_report(void *out)
{
    return mla_context_memory(context, out, NULL);
}

static mla_status fill_requirements(void *out)
{
    return mla_plan_requirements(plan, out, NULL);
}

static void an_out_struct_is_filled_as_far_as_it_reaches(void **state)
{
    (void)state;
    static const struct {
        mla_status (*fill)(void *out);
        size_t full;
    } outs[] = {
        {fill_info, sizeof(mla_device_info)},
        {fill_report, sizeof(mla_memory_report)},
        {fill_requirements, sizeof(mla_requirements)},
    };
    static _Alignas(16) unsigned char bytes[sizeof(mla_memory_report) + MAX_TAIL];
    for (int i = 0; i < 3; i++) {
        for (size_t size = 0; size <= outs[i].full; size++) {
            memset(bytes, 0xff, sizeof bytes);
            memcpy(bytes, &size, sizeof size);
            mla_status want = size < sizeof size ? MLA_ERR_ARGUMENT : MLA_OK;
            assert_int_equal(outs[i].fill(bytes), want);
            size_t kept;
            memcpy(&kept, bytes, sizeof kept);
            assert_int_equal(kept, size);
            for (size_t b = size > sizeof size ? size : sizeof size; b < sizeof bytes;
                 b++) {
                assert_int_equal(bytes[b], 0xff);
            }
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    const rig_request request = {1, 20, 1};
    mla_caps caps = rig_caps();
    one = rig_open(&caps, 1, 1);
    rig_load(&one, &request, 1);
    context = one.context;
    plan = one.plan;
    binding = one.binding;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_close(&one);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_structs_work_down_to_what_is_required),
        cmocka_unit_test(longer_structs_work_if_their_tail_is_zero),
        cmocka_unit_test(an_out_struct_is_filled_as_far_as_it_reaches),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
