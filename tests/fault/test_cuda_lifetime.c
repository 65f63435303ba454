/* Every call of the CUDA driver fails in turn, in a life that prepares twice, runs, records,
 * replays and appends: once by itself, once for want of memory, once for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attention/context.h"
#include "support/fake_cuda.h"
#include "support/rig.h"

static char cache[64];

typedef struct life {
    mla_context *context;
    mla_session *session;
    mla_plan *plan, *late; /* of the first job and of the second */
    mla_binding *binding;
    mla_buffers buffers;
    mla_error first; /* failure */
} life;

static mla_caps caps_of(int32_t num_heads)
{
    mla_caps caps = rig_caps();
    caps.kv_format = MLA_KV_BF16;
    caps.query_dtype = MLA_BF16;
    caps.num_heads = num_heads;
    return caps;
}

/* Notes the first failure of a life; what follows it must not hide it. */
static bool is_ok(life *l, mla_status status, const mla_error *err)
{
    if (status != MLA_OK && l->first.status == MLA_OK) {
        assert_int_equal(err->status, status);
        l->first = *err;
    }
    return status == MLA_OK;
}

static void expect_no_transients(const life *l)
{
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        uint64_t bytes =
            mlai_ledger_now(&l->context->ledger, (mla_space)space, MLA_FOR_SESSION);
        if (bytes != 0) {
            fail_msg("class session holds %llu bytes after %s failed",
                     (unsigned long long)bytes, fake.failed);
        }
    }
}

/* A job that fails is tried once more, as nothing has died. */
static bool prepare(life *l, int32_t num_heads, mla_plan **out)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_caps caps = caps_of(num_heads);
    mla_ticket ticket;
    if (!is_ok(l, mla_session_add(l->session, &caps, NULL, &ticket, &err), &err)) {
        return false;
    }
    mla_status status = mla_session_prepare(l->session, &err);
    expect_no_transients(l);
    if (!is_ok(l, status, &err)) {
        status = mla_session_prepare(l->session, &err);
        expect_no_transients(l);
        if (fake.dead == 0) {
            assert_int_equal(status, MLA_OK);
        } else {
            assert_int_equal(status, MLA_ERR_DEVICE);
        }
    }
    return status == MLA_OK &&
           is_ok(l, mla_session_publish(l->session, ticket, out, &err), &err);
}

static bool begin(life *l)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_context_options options = MLA_INIT(mla_context_options);
    mla_session_options how = MLA_INIT(mla_session_options);
    options.backend = MLA_BACKEND_CUDA;
    how.cache_dir = cache;
    return is_ok(l, mla_context_create(&options, &l->context, &err), &err) &&
           is_ok(l, mla_session_open(l->context, &how, &l->session, &err), &err) &&
           prepare(l, 4, &l->plan);
}

static bool bind_it(life *l)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_requirements need = MLA_INIT(mla_requirements);
    assert_int_equal(mla_plan_requirements(l->plan, &need, NULL), MLA_OK);
    l->buffers = rig_buffers(&need);
    return is_ok(l, mla_bind(l->plan, &l->buffers, &l->binding, &err), &err);
}

static const int64_t slots[3] = {0, 1, -1};

/* Each goes on where the one before failed, unless the device is dead. */
static void use(life *l)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_batch batch = MLA_INIT(mla_batch);
    mla_append_args args = MLA_INIT(mla_append_args);
    mla_stream stream = {NULL};
    batch.num_requests = batch.num_query_rows = 4;
    batch.max_context_tokens = 100;
    args.rows = l->buffers.query;
    args.slots = (mla_in){slots, sizeof slots};
    args.kv_pool =
        (mla_out){(void *)(uintptr_t)l->buffers.kv_pool.data, l->buffers.kv_pool.bytes};
    args.rows_dtype = MLA_BF16;
    args.num_rows = 3;
    (void)is_ok(l, mla_run(l->binding, &batch, stream, &err), &err);
    (void)is_ok(l, mla_append(l->plan, &args, stream, &err), &err);
    for (int i = 0; i < 2; i++) {
        (void)is_ok(l, mla_record(l->binding, &batch, &err), &err);
    }
    if (fake.failed == NULL) {
        (void)is_ok(l, mla_replay(l->binding, stream, &err), &err);
    }
    (void)is_ok(l, mla_poll(l->binding, &err), &err);
}

/* The plan of the first job runs on, whatever became of the second. */
static void use_again(life *l)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_batch batch = MLA_INIT(mla_batch);
    batch.num_requests = batch.num_query_rows = 1;
    bool had_failed = fake.failed != NULL;
    mla_status status = mla_run(l->binding, &batch, (mla_stream){NULL}, &err);
    if (had_failed) {
        assert_int_equal(status, fake.dead == 0 ? MLA_OK : MLA_ERR_DEVICE);
    } else {
        (void)is_ok(l, status, &err);
    }
}

static void live(life *l)
{
    if (begin(l) && bind_it(l)) {
        use(l);
        (void)prepare(l, 5, &l->late);
        use_again(l);
    }
}

static life whole_life(void)
{
    life l = {.first = {.status = MLA_OK}};
    live(&l);
    mla_unbind(&l.binding);
    mla_plan_release(&l.late);
    mla_session_close(&l.session);
    mla_plan_release(&l.plan);
    rig_buffers_free(&l.buffers);
    assert_int_equal(mla_context_destroy(&l.context, NULL), MLA_OK);
    return l;
}

static void expect_whole(const life *l)
{
    if (l->first.status != MLA_OK) {
        fail_msg("%s (%s)", l->first.message, l->first.where);
    }
}

/* Calls of a life with nothing to compile, because an earlier one has filled the cache. */
static int count_calls(void)
{
    fake_cuda_begin();
    life l = whole_life();
    expect_whole(&l);
    fake_cuda_end();
    fake_cuda_begin();
    l = whole_life();
    expect_whole(&l);
    assert_int_equal(fake_nvrtc_num_compiled(), 0);
    int num_calls = fake.num_calls;
    fake_cuda_end();
    return num_calls;
}

/* Calls that give back may fail unnoticed: there is nothing to be done. */
static void fail_each(mlai_cu_result with, bool is_sticky, mla_status expected)
{
    int num_calls = count_calls();
    int num_noticed = 0;
    for (int n = 0; n < num_calls; n++) {
        fake_cuda_begin();
        fake_cuda_fail(n, with, is_sticky);
        life l = whole_life();
        assert_non_null(fake.failed);
        if (l.first.status != MLA_OK) {
            num_noticed++;
            if (l.first.status != expected && l.first.status != MLA_ERR_UNSUPPORTED) {
                fail_msg("%s failed with %d: %s: %s", fake.failed, with,
                         mla_status_name(l.first.status), l.first.message);
            }
            if (l.first.status == expected) {
                assert_int_equal(l.first.native_code, with);
            }
        }
        fake_cuda_end();
    }
    print_message("%d of %d failures of %d were noticed\n", num_noticed, num_calls, with);
    assert_true(num_noticed > num_calls / 2);
}

static void any_call_may_fail_once(void **state)
{
    (void)state;
    fail_each(1, false, MLA_ERR_INTERNAL);
}

static void any_call_may_lack_memory(void **state)
{
    (void)state;
    fail_each(MLAI_CU_ERROR_OUT_OF_MEMORY, false, MLA_ERR_NO_MEMORY);
}

static void the_device_may_die_in_any_call(void **state)
{
    (void)state;
    fail_each(MLAI_CU_ERROR_LAUNCH_FAILED, true, MLA_ERR_DEVICE);
}

static int make_cache(void **state)
{
    (void)state;
    (void)snprintf(cache, sizeof cache, "/tmp/mla-cuda-XXXXXX");
    return mkdtemp(cache) ? 0 : -1;
}

static int remove_cache(void **state)
{
    (void)state;
    DIR *entries = opendir(cache);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        (void)unlinkat(dirfd(entries), entry->d_name, 0);
    }
    (void)closedir(entries);
    return rmdir(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_may_fail_once),
        cmocka_unit_test(any_call_may_lack_memory),
        cmocka_unit_test(the_device_may_die_in_any_call),
    };
    return cmocka_run_group_tests(tests, make_cache, remove_cache);
}
