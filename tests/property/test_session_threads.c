/* What a session promises beside its lifetimes: coalescing, incremental and all-or-nothing
 * jobs, programs that were declared, errors that are not hidden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attention/session.h"
#include "support/gpu.h"
#include "support/rig.h"

static mla_session *open_session(mla_context *context)
{
    mla_session *session = NULL;
    mla_session_options options = MLA_INIT(mla_session_options);
    options.cache_dir = gpu_cache();
    assert_int_equal(mla_session_open(context, &options, &session, NULL), MLA_OK);
    return session;
}

static mla_ticket add(mla_session *session, const mla_caps *caps)
{
    mla_ticket ticket;
    assert_int_equal(mla_session_add(session, caps, NULL, &ticket, NULL), MLA_OK);
    return ticket;
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

static void equal_requests_share_one_plan(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context);
    mla_caps caps = rig_caps();
    mla_caps same = caps; /* with the defaults written out */
    same.interleave = 1;
    same.page_stride_bytes = 16 * (int64_t)mla_kv_row_bytes(caps.kv_format, 128, 64);
    mla_caps other = caps;
    other.window = 5;
    mla_ticket ticket[] = {add(session, &caps), add(session, &same), add(session, &other)};
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    mla_plan *plan[3];
    for (int i = 0; i < 3; i++) {
        plan[i] = publish(session, ticket[i]);
    }
    assert_ptr_equal(plan[0], plan[1]);
    assert_ptr_not_equal(plan[0], plan[2]);
    mla_ticket late = add(session, &caps); /* of an earlier job: nothing is left to do */
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    mla_plan *again = publish(session, late);
    assert_ptr_equal(again, plan[0]);
    mla_plan_release(&again);
    for (int i = 0; i < 3; i++) {
        mla_plan_release(&plan[i]);
    }
    mla_session_close(&session);
    destroy(context);
}

static void many_requests_fit_a_session(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context);
    enum { NUM = 33 };
    for (int i = 0; i < NUM; i++) {
        mla_caps caps = rig_caps();
        caps.window = i % 17 + 1;
        assert_int_equal(add(session, &caps), i);
    }
    assert_int_equal(session->num_entries, 17);
    mla_session_close(&session); /* never prepared */
    destroy(context);
}

static const mlai_backend *ops_of_context;

static mla_status launch_a_stranger(mla_context *context, const mlai_launcher *launcher,
                                    const mlai_launch *launch, mla_error *err)
{
    mlai_programs_note(launch->launched, UINT64_C(1) << 63);
    return ops_of_context->launch(context, launcher, launch, err);
}

static mla_status launch_nothing(mla_context *context, const mlai_launcher *launcher,
                                 const mlai_launch *launch, mla_error *err)
{
    (void)context;
    (void)launcher;
    (void)launch;
    (void)err;
    return MLA_OK;
}

static void expect_refused_launch(mla_status (*launch)(mla_context *, const mlai_launcher *,
                                                       const mlai_launch *, mla_error *),
                                  const char *word)
{
    mla_context *context = rig_context(1, NULL);
    ops_of_context = context->ops;
    mlai_backend stranger = *ops_of_context;
    stranger.launch = launch;
    context->ops = &stranger;
    mla_session *session = open_session(context);
    mla_caps caps = rig_caps();
    mla_error err;
    (void)add(session, &caps);
    assert_int_equal(mla_session_prepare(session, &err), MLA_ERR_INTERNAL);
    assert_non_null(strstr(err.message, word));
    assert_non_null(
        strstr(err.message, rig_is_on_gpu ? "verify of [cuda:" : "verify of [cpu:"));
    context->ops = ops_of_context;
    assert_int_equal(mla_session_prepare(session, &err), MLA_OK);
    mla_session_close(&session);
    destroy(context);
}

static void an_undeclared_program_is_caught(void **state)
{
    (void)state;
    expect_refused_launch(launch_a_stranger, "undeclared programs were launched: 0x8000");
    expect_refused_launch(launch_nothing, "launched none of the declared");
}

static mla_status fail_to_wait(mla_context *context, mla_error *err)
{
    (void)context;
    return MLAI_FAIL(MLA_ERR_TIMEOUT, "the device does not answer");
}

static mla_status fail_at_operands(void *user, mlai_step step, int32_t n)
{
    (void)user;
    (void)n;
    return step == MLAI_STEP_OPERANDS ? MLA_ERR_DEVICE : MLA_OK;
}

static void cleaning_up_never_hides_the_first_error(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mlai_backend deaf = *context->ops;
    deaf.synchronise = fail_to_wait;
    context->ops = &deaf;
    mla_session *session = open_session(context);
    mla_caps caps = rig_caps();
    mla_error err;
    (void)add(session, &caps);
    mlai_session_set_hook(session, fail_at_operands, NULL);
    assert_int_equal(mla_session_prepare(session, &err), MLA_ERR_DEVICE);
    assert_non_null(strstr(err.message, "operands of ["));
    mlai_session_set_hook(session, NULL, NULL);
    assert_int_equal(mla_session_prepare(session, &err), MLA_ERR_TIMEOUT);
    mla_session_close(&session);
    destroy(context);
}

static void a_cancel_before_prepare_is_not_forgotten(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context);
    mla_session_cancel(session);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_ERR_CANCELLED);
    assert_int_equal(mla_session_prepare(session, NULL), MLA_OK);
    mla_session_close(&session);
    destroy(context);
}

static void publish_refuses_what_was_not_prepared(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mla_session *session = open_session(context);
    mla_caps caps = rig_caps();
    mla_plan *plan = NULL;
    mla_ticket ticket = add(session, &caps);
    assert_int_equal(mla_session_publish(session, ticket, &plan, NULL), MLA_ERR_STATE);
    assert_int_equal(mla_session_publish(session, ticket + 1, &plan, NULL),
                     MLA_ERR_ARGUMENT);
    assert_int_equal(mla_session_publish(session, -1, &plan, NULL), MLA_ERR_ARGUMENT);
    assert_null(plan);
    mla_session_close(&session);
    destroy(context);
}

static void note_line(void *user, mla_log_level level, const char *line)
{
    int *num_lines = user;
    assert_non_null(strstr(line, level == MLA_LOG_DISPATCH ? "compiling [cpu:c decode h4"
                                                           : "prepared 1 plans in"));
    (*num_lines)++;
}

static void a_log_tells_what_was_compiled(void **state)
{
    (void)state;
    for (int level = MLA_LOG_ERROR; level <= MLA_LOG_TIMING; level++) {
        int num_lines = 0;
        mla_context *context = NULL;
        mla_context_options options = MLA_INIT(mla_context_options);
        mla_caps caps = rig_caps();
        options.backend = MLA_BACKEND_CPU;
        options.num_threads = 1;
        options.isa_mask = MLA_ISA_C;
        options.log = note_line;
        options.log_user = &num_lines;
        options.log_level = (mla_log_level)level;
        assert_int_equal(mla_context_create(&options, &context, NULL), MLA_OK);
        mla_plan *plan = rig_plan(context, &caps);
        assert_int_equal(num_lines, level < MLA_LOG_DISPATCH ? 0 : level - 1);
        mla_plan_release(&plan);
        destroy(context);
    }
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_requests_share_one_plan),
        cmocka_unit_test(many_requests_fit_a_session),
        cmocka_unit_test(an_undeclared_program_is_caught),
        cmocka_unit_test(cleaning_up_never_hides_the_first_error),
        cmocka_unit_test(a_cancel_before_prepare_is_not_forgotten),
        cmocka_unit_test(publish_refuses_what_was_not_prepared),
    };
    const struct CMUnitTest on_cpu[] = {
        cmocka_unit_test(a_log_tells_what_was_compiled),
    };
    int num_failed = rig_is_on_gpu ? 0 : cmocka_run_group_tests(on_cpu, NULL, NULL);
    return num_failed + cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_suite("session", run_suite);
}
