/* When prepare has returned, in whatever way, the class `session` reads 0 while the plan is
 * held. A build with MLA_RETAIN_PRIMING must fail every test here and name the bytes.
 * usage: PROGRAM [cuda], where cuda is the fake driver of support/fake_cuda.h instead of the CPU
 * and of a GPU, if there is one. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "attention/session.h"
#include "support/fake_cuda.h"
#include "support/gpu.h"
#include "support/rig.h"

static uint64_t transient_bytes(const mla_context *context)
{
    uint64_t bytes = 0;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        bytes += mlai_ledger_now(&context->ledger, (mla_space)space, MLA_FOR_SESSION);
    }
    return bytes;
}

static void expect_no_transients(const mla_context *context, const char *when)
{
    uint64_t bytes = transient_bytes(context);
    if (bytes != 0) {
        fail_msg("class session holds %llu bytes %s", (unsigned long long)bytes, when);
    }
}

/* What a progress callback saw while a plan was being primed. */
typedef struct witness {
    const mla_context *context;
    uint64_t most_bytes;
    int num_calls;
} witness;

static void look(void *user, const mla_progress *progress)
{
    witness *seen = user;
    uint64_t bytes = transient_bytes(seen->context);
    seen->most_bytes = bytes > seen->most_bytes ? bytes : seen->most_bytes;
    seen->num_calls += progress->num_primed > 0;
}

static mla_caps caps_of(mla_kv_format format)
{
    mla_caps caps = rig_caps();
    if (format == MLA_KV_F32 && rig_backend == MLA_BACKEND_CUDA) {
        format = MLA_KV_BF16; /* f32 is the CPU's */
        caps.num_heads++;
    }
    caps.kv_format = format;
    caps.query_dtype = format == MLA_KV_FP8 ? MLA_E4M3 : MLA_BF16;
    caps.output_dtype = MLA_BF16;
    return caps;
}

static mla_session *open_session(mla_context *context, witness *seen)
{
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_session *session = NULL;
    options.cache_dir = gpu_cache();
    options.progress = seen ? look : NULL;
    options.progress_user = seen;
    assert_int_equal(mla_session_open(context, &options, &session, NULL), MLA_OK);
    return session;
}

static mla_ticket add_caps(mla_session *session, const mla_caps *caps)
{
    mla_ticket ticket;
    assert_int_equal(mla_session_add(session, caps, NULL, &ticket, NULL), MLA_OK);
    return ticket;
}

static mla_ticket add(mla_session *session, mla_kv_format format)
{
    mla_caps caps = caps_of(format);
    return add_caps(session, &caps);
}

static mla_plan *publish(mla_session *session, mla_ticket ticket)
{
    mla_plan *plan = NULL;
    assert_int_equal(mla_session_publish(session, ticket, &plan, NULL), MLA_OK);
    return plan;
}

static void destroy(mla_context *context)
{
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void expect_nothing_left_after_success(mla_kv_format format)
{
    mla_context *context = rig_context(2, NULL);
    witness seen = {.context = context};
    mla_session *session = open_session(context, &seen);
    mla_ticket ticket = add(session, format);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    assert_int_equal(seen.num_calls, 1);
    assert_true(seen.most_bytes > 0); /* else reading 0 afterwards would say nothing */
    expect_no_transients(context, "after prepare");
    mla_plan *plan = publish(session, ticket);
    expect_no_transients(context, "after publish");
    mla_session_close(&session);
    expect_no_transients(context, "after close, while the plan is held");
    mla_plan_release(&plan);
    destroy(context);
}

static void a_bf16_plan_keeps_no_priming_operand(void **state)
{
    (void)state;
    expect_nothing_left_after_success(MLA_KV_BF16);
}

static void an_fp8_plan_keeps_no_priming_operand(void **state)
{
    (void)state;
    expect_nothing_left_after_success(MLA_KV_FP8);
}

static void a_grouped_fp8_plan_keeps_no_priming_operand(void **state)
{
    (void)state;
    expect_nothing_left_after_success(MLA_KV_FP8_G128);
}

static void preparing_twice_keeps_no_priming_operand(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context, NULL);
    mla_ticket first = add(session, MLA_KV_BF16);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    mla_plan *plan = publish(session, first);
    mla_ticket second = add(session, MLA_KV_FP8);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    mla_plan *other = publish(session, second);
    expect_no_transients(context, "after a second prepare");
    mla_session_close(&session);
    mla_plan_release(&plan);
    mla_plan_release(&other);
    destroy(context);
}

/* Ends a job at one of its steps. */
typedef struct ending {
    mlai_step step;
    int32_t n;
    mla_session *cancel; /* cancelled from another thread; NULL: the step fails */
    int num_hits;
} ending;

static void *cancel_it(void *arg)
{
    mla_session_cancel(arg);
    return NULL;
}

static mla_status end_here(void *user, mlai_step step, int32_t n)
{
    ending *end = user;
    if (step != end->step || n != end->n) {
        return MLA_OK;
    }
    end->num_hits++;
    if (!end->cancel) {
        return MLA_ERR_DEVICE;
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_it, end->cancel), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return MLA_OK;
}

/* One plan stands, two are made, and the job that makes them ends at (step, n). */
static void expect_nothing_left_at(mlai_step step, int32_t n, mla_kv_format format,
                                   bool is_cancelled)
{
    mla_context *context = rig_context(2, NULL);
    mla_session *session = open_session(context, NULL);
    mla_ticket standing = add(session, MLA_KV_F32);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    uint64_t plan_bytes = mlai_ledger_now(&context->ledger, MLA_SPACE_HOST, MLA_FOR_PLAN);
    mla_ticket ticket = add(session, format);
    (void)add(session, MLA_KV_FP8_G128);
    ending end = {step, n, is_cancelled ? session : NULL, 0};
    mlai_session_set_hook(session, end_here, &end);
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_status status = mla_session_prepare(session, &err);
    assert_int_equal(status, is_cancelled ? MLA_ERR_CANCELLED : MLA_ERR_DEVICE);
    assert_int_equal(err.status, status);
    assert_int_equal(end.num_hits, 1);
    expect_no_transients(context, mlai_step_name(step));
    assert_int_equal(mlai_ledger_now(&context->ledger, MLA_SPACE_HOST, MLA_FOR_PLAN),
                     plan_bytes);
    mla_plan *plan = NULL;
    assert_int_equal(mla_session_publish(session, ticket, &plan, NULL), MLA_ERR_STATE);
    mla_plan *old = publish(session, standing); /* earlier plans stand */
    mlai_session_set_hook(session, NULL, NULL);
    assert_int_equal(mla_session_prepare(session, &err), MLA_OK); /* and it works again */
    expect_no_transients(context, "after a prepare that followed a failure");
    plan = publish(session, ticket);
    mla_session_close(&session);
    mla_plan_release(&plan);
    mla_plan_release(&old);
    destroy(context);
}

static void expect_nothing_left_at_every_step(bool is_cancelled)
{
    for (int step = 0; step < MLAI_NUM_STEPS; step++) {
        for (int32_t n = 0; n < 2; n++) {
            expect_nothing_left_at((mlai_step)step, n, MLA_KV_BF16, is_cancelled);
            expect_nothing_left_at((mlai_step)step, n, MLA_KV_FP8, is_cancelled);
        }
    }
}

static void a_failure_at_any_step_keeps_no_priming_operand(void **state)
{
    (void)state;
    expect_nothing_left_at_every_step(false);
}

static void a_cancel_at_any_step_keeps_no_priming_operand(void **state)
{
    (void)state;
    expect_nothing_left_at_every_step(true);
}

typedef struct delayed_cancel {
    mla_session *session;
    long delay_ns;
} delayed_cancel;

static void *cancel_later(void *arg)
{
    const delayed_cancel *cancel = arg;
    const struct timespec delay = {0, cancel->delay_ns};
    (void)nanosleep(&delay, NULL);
    mla_session_cancel(cancel->session);
    return NULL;
}

/* Makes a job long enough to be struck anywhere in it. */
static mla_status take_a_while(void *user, mlai_step step, int32_t n)
{
    (void)user;
    (void)step;
    (void)n;
    const struct timespec pause = {0, 20000};
    return nanosleep(&pause, NULL) == 0 ? MLA_OK : MLA_ERR_INTERNAL;
}

/* Wherever it strikes, the answer is one of two, and the other still works. Where compilers
 * run, they take most of the time: every second trial compiles, the others find a cache. */
static void a_cancel_may_come_at_any_moment(void **state)
{
    (void)state;
    enum { NUM_TRIALS = 40 };
    const long step_ns = rig_is_on_gpu                     ? 10000000
                         : rig_backend == MLA_BACKEND_CUDA ? 1000000
                                                           : 50000;
    int num_cancelled = 0;
    for (int trial = 0; trial < NUM_TRIALS; trial++) {
        mla_context *context = rig_context(1, NULL);
        mla_session *session = NULL;
        mla_session_options options = MLA_INIT(mla_session_options);
        options.cache_dir = trial % 2 ? gpu_cache() : NULL;
        assert_int_equal(mla_session_open(context, &options, &session, NULL), MLA_OK);
        (void)add(session, MLA_KV_BF16);
        mlai_session_set_hook(session, take_a_while, NULL);
        delayed_cancel cancel = {session, step_ns * trial};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancel_later, &cancel), 0);
        mla_status status = mla_session_prepare(session, NULL);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(status == MLA_OK || status == MLA_ERR_CANCELLED);
        num_cancelled += status == MLA_ERR_CANCELLED;
        expect_no_transients(context, "after a cancel at some moment");
        mla_session_close(&session);
        destroy(context);
    }
    print_message("%d of %d were cancelled\n", num_cancelled, NUM_TRIALS);
}

/* How large a compiled kernel is shows only later: an estimate of it is a bound. */
static bool is_bound(mla_space space, mla_purpose purpose)
{
    return rig_backend == MLA_BACKEND_CUDA &&
           (space == MLA_SPACE_HOST) == (purpose == MLA_FOR_SESSION);
}

static void expect_estimate(const mla_memory_report *told, const mla_memory_report *seen,
                            mla_space space, mla_purpose purpose)
{
    const mla_memory_cell *a = &told->cell[space][purpose];
    const mla_memory_cell *b = &seen->cell[space][purpose];
    bool is_right = is_bound(space, purpose)
                        ? b->now_bytes <= a->now_bytes && b->peak_bytes <= a->peak_bytes
                        : b->now_bytes == a->now_bytes && b->peak_bytes == a->peak_bytes;
    if (!is_right) {
        fail_msg("class %s holds %llu bytes after a peak of %llu, and the estimate was "
                 "%llu after %llu",
                 mla_purpose_name(purpose), (unsigned long long)b->now_bytes,
                 (unsigned long long)b->peak_bytes, (unsigned long long)a->now_bytes,
                 (unsigned long long)a->peak_bytes);
    }
}

static void an_estimate_is_exact(void **state)
{
    (void)state;
    mla_context *context = rig_context(2, NULL);
    mla_space space = context->ops->space;
    mla_session *session = open_session(context, NULL);
    mla_caps caps = caps_of(MLA_KV_F32);
    (void)add_caps(session, &caps);
    caps.kv_format = MLA_KV_FP8;
    caps.query_dtype = MLA_E4M3;
    caps.num_heads = 48;
    (void)add_caps(session, &caps);
    caps.num_heads = 1;
    (void)add_caps(session, &caps);
    mla_memory_report told = MLA_INIT(mla_memory_report);
    mla_memory_report seen = MLA_INIT(mla_memory_report);
    assert_int_equal(mla_session_estimate(session, &told, NULL), MLA_OK);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    assert_int_equal(mla_context_memory(context, &seen, NULL), MLA_OK);
    for (int purpose = MLA_FOR_SESSION; purpose <= MLA_FOR_PLAN; purpose++) {
        expect_estimate(&told, &seen, space, (mla_purpose)purpose);
        expect_estimate(&told, &seen, MLA_SPACE_HOST, (mla_purpose)purpose);
        assert_true(told.cell[space][purpose].peak_bytes > 0);
        assert_true(told.cell[MLA_SPACE_HOST][purpose].peak_bytes > 0);
    }
    assert_true(told.caller_bytes[space] > 0);
    told = (mla_memory_report)MLA_INIT(mla_memory_report);
    assert_int_equal(mla_session_estimate(session, &told, NULL), MLA_OK);
    assert_int_equal(told.cell[MLA_SPACE_HOST][MLA_FOR_SESSION].peak_bytes, 0);
    mla_session_close(&session);
    destroy(context);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bf16_plan_keeps_no_priming_operand),
        cmocka_unit_test(an_fp8_plan_keeps_no_priming_operand),
        cmocka_unit_test(a_grouped_fp8_plan_keeps_no_priming_operand),
        cmocka_unit_test(preparing_twice_keeps_no_priming_operand),
        cmocka_unit_test(a_failure_at_any_step_keeps_no_priming_operand),
        cmocka_unit_test(a_cancel_at_any_step_keeps_no_priming_operand),
        cmocka_unit_test(a_cancel_may_come_at_any_moment),
        cmocka_unit_test(an_estimate_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "cuda") == 0) {
        fake_cuda_begin();
        rig_backend = MLA_BACKEND_CUDA;
        int num_failed = run_suite();
        return num_failed != 0 || !fake_cuda_is_clean();
    }
    return gpu_suite("lifetime", run_suite);
}
