/* Signals while a plan is prepared on CUDA (the fake driver and compiler): Ctrl-C in a prime
 * and while compilers run, and the death of the process whose compilers they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attention/context.h"
#include "attention/session.h"
#include "support/fake_cuda.h"
#include "support/rig.h"

static _Atomic(mla_session *) interrupted; /* what SIGINT cancels */

static void on_interrupt(int number)
{
    (void)number;
    mla_session_cancel(atomic_load(&interrupted));
}

static int begin(void **state)
{
    (void)state;
    fake_cuda_begin();
    rig_backend = MLA_BACKEND_CUDA;
    (void)signal(SIGINT, on_interrupt);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)signal(SIGINT, SIG_DFL);
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

static mla_session *open_session(mla_context *context)
{
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_session *session = NULL;
    options.compile_workers = 2;
    assert_int_equal(mla_session_open(context, &options, &session, NULL), MLA_OK);
    atomic_store(&interrupted, session);
    return session;
}

static mla_ticket add(mla_session *session, int32_t num_heads)
{
    mla_caps caps = caps_of(num_heads);
    mla_ticket ticket;
    assert_int_equal(mla_session_add(session, &caps, NULL, &ticket, NULL), MLA_OK);
    return ticket;
}

static void expect_no_transients(const mla_context *context, const char *when)
{
    uint64_t bytes = 0;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        bytes += mlai_ledger_now(&context->ledger, (mla_space)space, MLA_FOR_SESSION);
    }
    if (bytes != 0) {
        fail_msg("class session holds %llu bytes %s", (unsigned long long)bytes, when);
    }
}

/* At a step of the job: a signal, and what the step then gives. */
typedef struct strike {
    mlai_step step;
    mla_status status;
} strike;

static mla_status strike_here(void *user, mlai_step step, int32_t n)
{
    const strike *at = user;
    (void)n;
    if (step != at->step) {
        return MLA_OK;
    }
    (void)raise(SIGINT);
    return at->status;
}

static void ctrl_c_in_a_prime_cancels_and_leaves_nothing(void **state)
{
    (void)state;
    mla_caps caps = caps_of(4);
    rig standing = rig_open(&caps, 1, 1);
    standing.batch = (mla_batch)MLA_INIT(mla_batch);
    standing.batch.num_requests = standing.batch.num_query_rows = 1;
    standing.batch.max_context_tokens = 20;
    mla_session *session = open_session(standing.context);
    mla_ticket ticket = add(session, 5);
    strike in_prime = {MLAI_STEP_PRIME, MLA_OK};
    mlai_session_set_hook(session, strike_here, &in_prime);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_ERR_CANCELLED);
    expect_no_transients(standing.context, "after Ctrl-C in a prime");
    assert_int_equal(mla_run(standing.binding, &standing.batch, (mla_stream){NULL}, NULL),
                     MLA_OK);
    mlai_session_set_hook(session, NULL, NULL);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    mla_plan *plan = NULL;
    assert_int_equal(mla_session_publish(session, ticket, &plan, NULL), MLA_OK);
    mla_plan_release(&plan);
    mla_session_close(&session);
    rig_close(&standing);
}

static void a_cancel_that_comes_with_another_failure_is_spent(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context);
    (void)add(session, 4);
    strike in_load = {MLAI_STEP_LOAD, MLA_ERR_DEVICE};
    mlai_session_set_hook(session, strike_here, &in_load);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_ERR_DEVICE);
    mlai_session_set_hook(session, NULL, NULL);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    expect_no_transients(context, "after a failure and a cancel");
    mla_session_close(&session);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

/* A process group of its own whose compilers hang. Ends with 0 if it was cancelled. */
static pid_t start_compiling(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        fake_nvrtc_meet(FAKE_COMPILER_HANGS, "attend");
        mla_context *context = rig_context(1, NULL);
        mla_session *session = open_session(context);
        (void)add(session, 4);
        _exit(mla_session_prepare(session, NULL) == MLA_ERR_CANCELLED ? 0 : 1);
    }
    (void)setpgid(pid, pid);
    const struct timespec until_they_run = {0, 200000000};
    (void)nanosleep(&until_they_run, NULL);
    return pid;
}

/* Every process that is left of the group becomes ours: they must end by themselves. */
static void expect_no_process_left(void)
{
    const struct timespec pause = {0, 10000000};
    enum { TRIALS = 500 };
    pid_t got = 0;
    for (int i = 0; i < TRIALS && got >= 0; i++) {
        got = waitpid(-1, NULL, WNOHANG);
        if (got == 0) {
            (void)nanosleep(&pause, NULL);
        }
    }
    assert_int_equal(got, -1);
    assert_int_equal(errno, ECHILD);
}

static void ctrl_c_at_a_terminal_reaches_compilers_too_and_is_a_cancel(void **state)
{
    (void)state;
    int ended = -1;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = start_compiling();
    assert_int_equal(kill(-pid, SIGINT), 0);
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    expect_no_process_left();
}

static void compilers_do_not_outlive_a_killed_process(void **state)
{
    (void)state;
    int ended = -1;
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = start_compiling();
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    expect_no_process_left();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ctrl_c_in_a_prime_cancels_and_leaves_nothing),
        TEST(a_cancel_that_comes_with_another_failure_is_spent),
        TEST(ctrl_c_at_a_terminal_reaches_compilers_too_and_is_a_cancel),
        TEST(compilers_do_not_outlive_a_killed_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
