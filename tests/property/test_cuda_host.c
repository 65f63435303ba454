/* What the CUDA backend promises its caller, on the fake driver: captures, contexts, the
 * freeze, compiling once, and names for what goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attention/context.h"
#include "support/fake_cuda.h"
#include "support/rig.h"

static int begin(void **state)
{
    (void)state;
    fake_cuda_begin();
    rig_backend = MLA_BACKEND_CUDA;
    return 0;
}

static int end(void **state)
{
    (void)state;
    fake_cuda_set_current(-1);
    fake_cuda_end();
    return 0;
}

static mla_caps caps_of(int32_t num_heads)
{
    mla_caps caps = rig_caps();
    caps.kv_format = MLA_KV_BF16;
    caps.query_dtype = MLA_BF16;
    caps.num_heads = num_heads;
    return caps;
}

static rig open_rig(void)
{
    mla_caps caps = caps_of(4);
    rig r = rig_open(&caps, 1, 1);
    r.batch = (mla_batch)MLA_INIT(mla_batch);
    r.batch.num_requests = r.batch.num_query_rows = 2;
    r.batch.max_context_tokens = 50;
    return r;
}

static void run_on(const rig *r, mlai_cu_stream stream)
{
    assert_int_equal(mla_run(r->binding, &r->batch, (mla_stream){stream}, NULL), MLA_OK);
}

static mla_append_args append_args(const rig *r)
{
    mla_append_args args = MLA_INIT(mla_append_args);
    args.rows = r->buffers.query;
    args.slots = r->buffers.block_table;
    args.kv_pool =
        (mla_out){(void *)(uintptr_t)r->buffers.kv_pool.data, r->buffers.kv_pool.bytes};
    args.rows_dtype = MLA_BF16;
    args.num_rows = 1;
    return args;
}

/* A graph of the caller's: `num` runs and an append, captured. */
static mlai_cu_graph_exec capture(const rig *r, int num)
{
    const mlai_cuda_driver *driver = fake_cuda_driver();
    mlai_cu_stream stream = fake_cuda_stream();
    mlai_cu_graph graph = NULL;
    mlai_cu_graph_exec exec = NULL;
    mla_append_args args = append_args(r);
    fake_cuda_set_current(0);
    assert_int_equal(driver->cuStreamBeginCapture(stream, 0), 0);
    int num_launches = fake.num_launches;
    for (int i = 0; i < num; i++) {
        run_on(r, stream);
    }
    assert_int_equal(mla_append(r->plan, &args, (mla_stream){stream}, NULL), MLA_OK);
    assert_int_equal(fake.num_launches, num_launches); /* captured, not run */
    assert_int_equal(driver->cuStreamEndCapture(stream, &graph), 0);
    assert_int_equal(driver->cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    assert_int_equal(driver->cuGraphDestroy(graph), 0);
    fake_cuda_stream_free(stream);
    return exec;
}

static void launch(mlai_cu_graph_exec exec)
{
    assert_int_equal(fake_cuda_driver()->cuGraphLaunch(exec, NULL), 0);
}

static void drop(mlai_cu_graph_exec exec)
{
    assert_int_equal(fake_cuda_driver()->cuGraphExecDestroy(exec), 0);
}

static void a_run_launches_what_its_plan_declares_where_it_is_told(void **state)
{
    (void)state;
    rig r = open_rig();
    mlai_cu_stream stream = fake_cuda_stream();
    int first = fake.num_launches;
    run_on(&r, stream);
    assert_int_equal(fake.num_launches, first + 2);
    assert_string_equal(fake.launch[first].module, "attend_bf16_m16");
    assert_string_equal(fake.launch[first].function, "attend");
    assert_string_equal(fake.launch[first + 1].module, "merge");
    assert_ptr_equal(fake.launch[first].stream, stream);
    const void *pool;
    memcpy(&pool, fake.launch[first].parameters, sizeof pool);
    assert_ptr_equal(pool, r.buffers.kv_pool.data);
    rig_close(&r);
    fake_cuda_stream_free(stream);
}

static void a_merge_may_start_early_where_the_device_knows_of_it(void **state)
{
    (void)state;
    for (int major = 8; major <= 9; major++) {
        fake.major = major;
        rig r = open_rig();
        int first = fake.num_launches;
        run_on(&r, NULL);
        assert_int_equal(fake.num_launches, first + 2);
        assert_false(fake.launch[first].is_early); /* what it follows may be anybody's */
        assert_int_equal(fake.launch[first + 1].is_early, major == 9);
        rig_close(&r);
    }
}

static void a_batch_without_rows_launches_nothing(void **state)
{
    (void)state;
    rig r = open_rig();
    int first = fake.num_launches;
    r.batch.num_query_rows = 0;
    run_on(&r, NULL);
    assert_int_equal(fake.num_launches, first);
    rig_close(&r);
}

static void a_run_is_legal_in_the_callers_capture(void **state)
{
    (void)state;
    rig r = open_rig();
    mlai_cu_graph_exec exec = capture(&r, 3);
    int first = fake.num_launches;
    launch(exec);
    launch(exec);
    assert_int_equal(fake.num_launches, first + 2 * (3 * 2 + 1));
    drop(exec);
    rig_close(&r);
}

static void a_plan_in_a_callers_graph_outlives_its_release(void **state)
{
    (void)state;
    mla_error err;
    rig r = open_rig();
    mlai_cu_graph_exec exec = capture(&r, 1);
    mla_unbind(&r.binding);
    mla_plan_release(&r.plan);
    assert_true(fake.num_modules > 0);
    launch(exec); /* the fake sees a kernel of an unloaded module */
    assert_int_equal(mla_context_destroy(&r.context, &err), MLA_ERR_STATE);
    assert_non_null(strstr(err.message, "captured runs"));
    assert_non_null(r.context);
    drop(exec);
    assert_int_equal(mla_context_destroy(&r.context, NULL), MLA_OK);
    rig_buffers_free(&r.buffers);
}

static void a_capture_that_broke_refuses_the_run(void **state)
{
    (void)state;
    rig r = open_rig();
    mla_error err;
    fake_cuda_fail(0, 901, false); /* the capture was invalidated */
    assert_int_equal(mla_run(r.binding, &r.batch, (mla_stream){NULL}, &err), MLA_ERR_STATE);
    assert_int_equal(err.native_code, 901);
    run_on(&r, NULL); /* nothing has died */
    rig_close(&r);
}

static void a_replay_takes_nothing_and_is_legal_after_the_freeze(void **state)
{
    (void)state;
    rig r = open_rig();
    mlai_cu_stream stream = fake_cuda_stream();
    mla_error err;
    assert_int_equal(mla_record(r.binding, &r.batch, NULL), MLA_OK);
    assert_int_equal(mla_context_freeze(r.context, NULL), MLA_OK);
    mla_memory_report before = MLA_INIT(mla_memory_report);
    mla_memory_report after = MLA_INIT(mla_memory_report);
    assert_int_equal(mla_context_memory(r.context, &before, NULL), MLA_OK);
    int first = fake.num_launches;
    size_t bytes = fake.bytes;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(mla_replay(r.binding, (mla_stream){i % 2 ? stream : NULL}, NULL),
                         MLA_OK);
        run_on(&r, stream);
    }
    assert_int_equal(fake.num_launches, first + 10 * 4);
    assert_int_equal(fake.bytes, bytes);
    assert_int_equal(mla_context_memory(r.context, &after, NULL), MLA_OK);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(mla_record(r.binding, &r.batch, &err), MLA_ERR_FROZEN);
    assert_non_null(strstr(err.message, "cuda:sm90a decode h4"));
    rig_close(&r);
    fake_cuda_stream_free(stream);
}

static void a_poll_does_not_wait(void **state)
{
    (void)state;
    rig r = open_rig();
    assert_int_equal(mla_poll(r.binding, NULL), MLA_OK); /* nothing was ever run */
    run_on(&r, NULL);
    fake.is_busy = true;
    assert_int_equal(mla_poll(r.binding, NULL), MLA_ERR_STATE);
    fake.is_busy = false;
    assert_int_equal(mla_poll(r.binding, NULL), MLA_OK);
    rig_close(&r);
}

static void the_first_failure_of_a_dead_device_is_told_for_good(void **state)
{
    (void)state;
    rig r = open_rig();
    mla_error err;
    mla_session *session = NULL;
    mla_caps caps = caps_of(9);
    mla_ticket ticket;
    fake_cuda_fail(1, MLAI_CU_ERROR_ILLEGAL_ADDRESS, true);
    assert_int_equal(mla_run(r.binding, &r.batch, (mla_stream){NULL}, &err),
                     MLA_ERR_DEVICE);
    assert_non_null(strstr(err.message, "cuLaunchKernelEx failed"));
    assert_int_equal(mla_poll(r.binding, &err), MLA_ERR_DEVICE);
    assert_non_null(strstr(err.message, "cuLaunchKernelEx failed"));
    assert_int_equal(err.native_code, MLAI_CU_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(mla_session_open(r.context, NULL, &session, &err), MLA_OK);
    assert_int_equal(mla_session_add(session, &caps, NULL, &ticket, &err), MLA_ERR_DEVICE);
    mla_session_close(&session);
    rig_close(&r); /* destroying works */
}

static void the_callers_context_is_used_and_left_as_it_was(void **state)
{
    (void)state;
    fake_cuda_set_current(0);
    mlai_cu_context current = fake.current;
    rig r = open_rig();
    run_on(&r, NULL);
    assert_int_equal(fake.num_primaries, 0);
    assert_ptr_equal(fake.current, current);
    rig_close(&r);
    assert_ptr_equal(fake.current, current);
}

static void the_context_of_another_device_is_not_used(void **state)
{
    (void)state;
    fake.num_devices = 2;
    fake_cuda_set_current(1);
    mlai_cu_context current = fake.current;
    rig r = open_rig();
    assert_int_equal(fake.num_primaries, 1);
    assert_ptr_equal(fake.current, current);
    rig_close(&r);
}

static mla_status try_to_open(int32_t device, uint32_t isa_mask, mla_error *err)
{
    mla_context *context = NULL;
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CUDA;
    options.device = device;
    options.isa_mask = isa_mask;
    return mla_context_create(&options, &context, err);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    mla_error err;
    mla_device_info info = MLA_INIT(mla_device_info);
    assert_int_equal(try_to_open(1, 0, &err), MLA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no CUDA device 1"));
    assert_int_equal(try_to_open(0, MLA_ISA_AVX2, &err), MLA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "0x2"));
    fake.major = 7;
    fake.minor = 5;
    assert_int_equal(try_to_open(0, 0, &err), MLA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "7.5"));
    fake.num_devices = 0;
    assert_int_equal(mla_query_device(MLA_BACKEND_CUDA, 0, &info, &err),
                     MLA_ERR_UNSUPPORTED);
}

static void a_device_is_described(void **state)
{
    (void)state;
    mla_device_info info = MLA_INIT(mla_device_info);
    assert_int_equal(mla_query_device(MLA_BACKEND_CUDA, 0, &info, NULL), MLA_OK);
    assert_string_equal(info.name, "Fake 0");
    assert_int_equal(info.isa_mask, MLA_ISA_SM80);
    assert_int_equal(info.num_units, 16);
    assert_true(info.total_bytes > 0 && info.free_bytes == 0); /* no context to ask in */
    rig r = open_rig();
    assert_int_equal(mla_query_device(MLA_BACKEND_CUDA, 0, &info, NULL), MLA_OK);
    assert_true(info.free_bytes > 0);
    rig_close(&r);
}

static mla_progress last;

static void note_progress(void *user, const mla_progress *progress)
{
    (void)user;
    last = *progress;
}

static mla_session *open_session(mla_context *context, const char *cache_dir)
{
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_session *session = NULL;
    options.cache_dir = cache_dir;
    options.compile_workers = 2;
    options.progress = note_progress;
    assert_int_equal(mla_session_open(context, &options, &session, NULL), MLA_OK);
    return session;
}

static void add(mla_session *session, int32_t num_heads)
{
    mla_caps caps = caps_of(num_heads);
    mla_ticket ticket;
    assert_int_equal(mla_session_add(session, &caps, NULL, &ticket, NULL), MLA_OK);
}

static int num_logged;

static void note_log(void *user, mla_log_level level, const char *line)
{
    (void)user;
    num_logged += level == MLA_LOG_ERROR && strstr(line, "corrupt") != NULL;
}

/* Prepares plans of 4, 5 and 6 heads, whose programs are the same. */
static void prepare_three(const char *cache_dir)
{
    mla_context *context = NULL;
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CUDA;
    options.log = note_log;
    assert_int_equal(mla_context_create(&options, &context, NULL), MLA_OK);
    mla_session *session = open_session(context, cache_dir);
    add(session, 4);
    add(session, 5);
    add(session, 6);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    assert_int_equal(last.num_primed, 3);
    assert_int_equal(last.num_compiled, 3);
    mla_session_close(&session);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

/* The same in another process; all come from the cache there. */
static void prepare_three_elsewhere(const char *cache_dir)
{
    int ended = -1;
    pid_t pid = fork();
    if (pid == 0) {
        prepare_three(cache_dir);
        _exit(last.num_from_cache == 3 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
}

/* Deletes the cache's files, or writes over each file's last byte. */
static void each_cached(const char *cache_dir, bool is_deleted)
{
    DIR *entries = opendir(cache_dir);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (is_deleted) {
            assert_int_equal(unlinkat(dirfd(entries), entry->d_name, 0), 0);
            continue;
        }
        int file = openat(dirfd(entries), entry->d_name, O_WRONLY);
        assert_true(lseek(file, -1, SEEK_END) > 0);
        assert_int_equal(write(file, "?", 1), 1);
        (void)close(file);
    }
    (void)closedir(entries);
}

static void equal_programs_are_compiled_once_and_then_never(void **state)
{
    (void)state;
    enum { NUM_PROGRAMS = 3 };
    char cache_dir[] = "/tmp/mla-host-XXXXXX";
    assert_non_null(mkdtemp(cache_dir));
    prepare_three(cache_dir);
    assert_int_equal(fake_nvrtc_num_compiled(), NUM_PROGRAMS);
    assert_int_equal(last.num_from_cache, 0);
    prepare_three(cache_dir);
    assert_int_equal(fake_nvrtc_num_compiled(), NUM_PROGRAMS);
    assert_int_equal(last.num_from_cache, 3);
    prepare_three_elsewhere(cache_dir); /* a second process compiles nothing */
    assert_int_equal(fake_nvrtc_num_compiled(), NUM_PROGRAMS);
    num_logged = 0;
    each_cached(cache_dir, false);
    prepare_three(cache_dir);
    assert_int_equal(num_logged, NUM_PROGRAMS);
    assert_int_equal(fake_nvrtc_num_compiled(), 2 * NUM_PROGRAMS);
    prepare_three(cache_dir); /* repaired */
    assert_int_equal(fake_nvrtc_num_compiled(), 2 * NUM_PROGRAMS);
    fake_nvrtc_set_version(13, 1); /* another compiler, other kernels */
    prepare_three(cache_dir);
    assert_int_equal(fake_nvrtc_num_compiled(), 3 * NUM_PROGRAMS);
    each_cached(cache_dir, true);
    assert_int_equal(rmdir(cache_dir), 0);
}

static void a_cache_that_cannot_be_written_is_no_failure(void **state)
{
    (void)state;
    prepare_three("/proc/nowhere");
    assert_int_equal(fake_nvrtc_num_compiled(), 3);
}

static void expect_compile_failure(fake_compiler how, const char *text)
{
    mla_error err;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context, NULL);
    add(session, 4);
    fake_nvrtc_meet(how, "merge");
    assert_int_equal(mla_session_prepare(session, &err), MLA_ERR_INTERNAL);
    assert_non_null(strstr(err.message, "merge"));
    assert_non_null(strstr(err.message, text));
    assert_int_equal(mlai_ledger_now(&context->ledger, MLA_SPACE_HOST, MLA_FOR_SESSION), 0);
    fake_nvrtc_meet(FAKE_COMPILES, "merge");
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    mla_session_close(&session);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void a_program_that_does_not_compile_is_named(void **state)
{
    (void)state;
    expect_compile_failure(FAKE_COMPILE_ERROR, "it is wrong");
    expect_compile_failure(FAKE_COMPILER_CRASHES, "signal 11");
}

static void *cancel_soon(void *arg)
{
    const struct timespec delay = {0, 50000000};
    (void)nanosleep(&delay, NULL);
    mla_session_cancel(arg);
    return NULL;
}

static void a_cancel_ends_a_compiler_that_hangs(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context, NULL);
    pthread_t thread;
    add(session, 4);
    fake_nvrtc_meet(FAKE_COMPILER_HANGS, "attend");
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, session), 0);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_ERR_CANCELLED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    mla_session_close(&session);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_launches_what_its_plan_declares_where_it_is_told),
        TEST(a_merge_may_start_early_where_the_device_knows_of_it),
        TEST(a_batch_without_rows_launches_nothing),
        TEST(a_run_is_legal_in_the_callers_capture),
        TEST(a_plan_in_a_callers_graph_outlives_its_release),
        TEST(a_capture_that_broke_refuses_the_run),
        TEST(a_replay_takes_nothing_and_is_legal_after_the_freeze),
        TEST(a_poll_does_not_wait),
        TEST(the_first_failure_of_a_dead_device_is_told_for_good),
        TEST(the_callers_context_is_used_and_left_as_it_was),
        TEST(the_context_of_another_device_is_not_used),
        TEST(what_cannot_be_opened_is_named),
        TEST(a_device_is_described),
        TEST(equal_programs_are_compiled_once_and_then_never),
        TEST(a_cache_that_cannot_be_written_is_no_failure),
        TEST(a_program_that_does_not_compile_is_named),
        TEST(a_cancel_ends_a_compiler_that_hangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
