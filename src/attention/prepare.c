/* prepare.c - the job: a table of steps from declared requests to plans. See session.h. */
#include <inttypes.h>

#include "attention/session.h"
#ifdef MLA_RETAIN_PRIMING
#include "attention/retain.h"
#endif
#include "base/clock.h"

static void report_progress(mla_session *session)
{
    if (session->on_progress) {
        session->on_progress(session->progress_user, &session->progress);
    }
}

static void log_entry(const mla_session *session, const mlai_entry *entry,
                      mla_log_level level, const char *words)
{
    char text[MLAI_PLAN_LINE_BYTES];
    (void)mlai_describe(session->context, &entry->geometry.caps, text, sizeof text);
    mlai_context_log(session->context, level, "%s [%s]", words, text);
}

static mla_status step_declare(mla_session *session, mlai_entry *entry, mla_error *err)
{
    mla_context *context = session->context;
    log_entry(session, entry, MLA_LOG_DISPATCH, "compiling");
    return context->ops->declare(context, &entry->geometry, &entry->artefact, err);
}

/* Only asks and looks, for each plan: what compiles is compile_together. */
static mla_status step_compile(mla_session *session, mlai_entry *entry, mla_error *err)
{
    (void)session;
    (void)entry;
    (void)err;
    return MLA_OK;
}

static void drop_artefact(mla_session *session, mlai_entry *entry)
{
    if (entry->artefact) {
        session->context->ops->discard(session->context, entry->artefact);
        entry->artefact = NULL;
    }
}

static mla_status step_load(mla_session *session, mlai_entry *entry, mla_error *err)
{
    mla_context *context = session->context;
    MLAI_TRY(mlai_plan_new(context, &entry->geometry, entry->workspace_bytes, &entry->fresh,
                           err));
    MLAI_TRY(context->ops->load(context, &entry->geometry, entry->artefact,
                                &entry->fresh->launcher, err));
    drop_artefact(session, entry);
    return MLA_OK;
}

static mla_status step_operands(mla_session *session, mlai_entry *entry, mla_error *err)
{
    MLAI_TRY(mlai_operands_take(session->context, &entry->geometry, entry->workspace_bytes,
                                &session->operands, err));
    return mlai_operands_fill(session->context, &session->operands, err);
}

static mla_status step_prime(mla_session *session, mlai_entry *entry, mla_error *err)
{
    mla_context *context = session->context;
    const mlai_operands *operands = &session->operands;
    atomic_store(&session->launched, 0);
    mlai_launch launch = {.geometry = &operands->geometry,
                          .buffers = &operands->buffers,
                          .batch = &operands->batch,
                          .launched = &session->launched};
    return context->ops->launch(context, entry->fresh->launcher, &launch, err);
}

static mla_status step_synchronise(mla_session *session, mlai_entry *entry, mla_error *err)
{
    (void)entry;
    MLAI_TRY(session->context->ops->synchronise(session->context, err));
    session->progress.num_primed++;
    report_progress(session); /* the operands are still held: a caller may look at them */
    return MLA_OK;
}

static mla_status step_verify(mla_session *session, mlai_entry *entry, mla_error *err)
{
    uint64_t declared = session->context->ops->declared(entry->fresh->launcher);
    uint64_t launched = atomic_load(&session->launched);
    MLAI_CHECK((launched & ~declared) == 0, MLA_ERR_INTERNAL,
               "undeclared programs were launched: 0x%" PRIx64 " of 0x%" PRIx64
               " are not in 0x%" PRIx64,
               launched & ~declared, launched, declared);
    MLAI_CHECK(launched != 0, MLA_ERR_INTERNAL,
               "priming launched none of the declared programs 0x%" PRIx64, declared);
    return MLA_OK;
}

static void give_operands(mla_session *session, mlai_entry *entry)
{
#ifdef MLA_RETAIN_PRIMING
    mlai_retain(&session->operands,
                entry && entry->fresh ? &entry->fresh->kept : &session->kept);
#else
    (void)entry;
#endif
    mlai_operands_give(session->context, &session->operands);
}

static mla_status step_release(mla_session *session, mlai_entry *entry, mla_error *err)
{
    (void)err;
    give_operands(session, entry);
    return MLA_OK;
}

static const struct {
    const char *name;
    mla_status (*act)(mla_session *session, mlai_entry *entry, mla_error *err);
} steps[MLAI_NUM_STEPS] = {
    [MLAI_STEP_DECLARE] = {"declare", step_declare},
    [MLAI_STEP_COMPILE] = {"compile", step_compile},
    [MLAI_STEP_LOAD] = {"load", step_load},
    [MLAI_STEP_OPERANDS] = {"operands", step_operands},
    [MLAI_STEP_PRIME] = {"prime", step_prime},
    [MLAI_STEP_SYNCHRONISE] = {"synchronise", step_synchronise},
    [MLAI_STEP_VERIFY] = {"verify", step_verify},
    [MLAI_STEP_RELEASE] = {"release", step_release},
};

const char *mlai_step_name(mlai_step step)
{
    return (unsigned)step < MLAI_NUM_STEPS ? steps[step].name : NULL;
}

static mla_status check_cancel(mla_session *session, mla_error *err)
{
    MLAI_CHECK(!atomic_exchange(&session->is_cancelled, false), MLA_ERR_CANCELLED,
               "the session was cancelled");
    return MLA_OK;
}

static mla_status take_step(mla_session *session, mlai_step step, int32_t n,
                            mlai_entry *entry, mla_error *err)
{
    if (session->hook) {
        mla_status status = session->hook(session->hook_user, step, n);
        MLAI_CHECK(status == MLA_OK, status, "the test hook failed this step");
    }
    MLAI_TRY(check_cancel(session, err));
    return steps[step].act(session, entry, err);
}

/* Steps [first, last] of every new plan, plan by plan. */
static mla_status take_steps(mla_session *session, mlai_step first, mlai_step last,
                             mla_error *err)
{
    int32_t n = 0;
    for (int32_t i = 0; i < session->num_entries; i++) {
        mlai_entry *entry = &session->entry[i];
        if (entry->plan) {
            continue;
        }
        for (int step = (int)first; step <= (int)last; step++) {
            mla_status status = take_step(session, (mlai_step)step, n, entry, err);
            if (status != MLA_OK) {
                char text[MLAI_PLAN_LINE_BYTES];
                (void)mlai_describe(session->context, &entry->geometry.caps, text,
                                    sizeof text);
                mlai_error_prefix(err, "%s of [%s]", steps[step].name, text);
                return status;
            }
        }
        n++;
    }
    return MLA_OK;
}

static mlai_artefact *new_artefact(void *user, int32_t n)
{
    const mla_session *session = user;
    int32_t i = 0;
    for (; i < session->num_entries; i++) {
        if (!session->entry[i].plan && n-- == 0) {
            break;
        }
    }
    return session->entry[i].artefact;
}

static mla_status keep_on(void *user, mla_error *err)
{
    return check_cancel(user, err);
}

static void note_compiled(void *user, int32_t num_compiled, int32_t num_from_cache)
{
    mla_session *session = user;
    session->progress.num_compiled = num_compiled;
    session->progress.num_from_cache = num_from_cache;
    report_progress(session);
}

static mla_status compile_together(mla_session *session, mla_error *err)
{
    mla_context *context = session->context;
    mlai_compile_job job = {.artefact = new_artefact,
                            .num = session->progress.num_requests,
                            .num_workers = session->num_compile_workers,
                            .cache_dir = session->cache_dir,
                            .nvrtc_path = session->nvrtc_path,
                            .keep_on = keep_on,
                            .progress = note_compiled,
                            .user = session};
    mla_status status = context->ops->compile(context, &job, err);
    if (status != MLA_OK) {
        mlai_error_prefix(err, "%s of %d plans", steps[MLAI_STEP_COMPILE].name, job.num);
    }
    return status;
}

/* Nothing may be freed that the device still uses, and a failure to wait must not hide the
 * failure that led here. */
static void roll_back(mla_session *session)
{
    (void)session->context->ops->synchronise(session->context, NULL);
    give_operands(session, NULL);
    for (int32_t i = session->num_entries - 1; i >= 0; i--) {
        mlai_entry *entry = &session->entry[i];
        drop_artefact(session, entry);
#ifdef MLA_RETAIN_PRIMING
        if (entry->fresh) {
            mlai_retain(&entry->fresh->kept, &session->kept);
        }
#endif
        mla_plan_release(&entry->fresh);
    }
}

static void make_publishable(mla_session *session)
{
    for (int32_t i = 0; i < session->num_entries; i++) {
        mlai_entry *entry = &session->entry[i];
        if (!entry->plan) {
            entry->plan = entry->fresh;
            entry->fresh = NULL;
        }
    }
}

static int32_t count_new(const mla_session *session)
{
    int32_t num = 0;
    for (int32_t i = 0; i < session->num_entries; i++) {
        num += session->entry[i].plan == NULL;
    }
    return num;
}

mla_status mla_session_prepare(mla_session *session, mla_error *err)
{
    MLAI_CHECK(session, MLA_ERR_ARGUMENT, "session is NULL");
    int64_t start_ns = mlai_now_ns();
    session->progress = (mla_progress){.num_requests = count_new(session)};
    mla_status status = check_cancel(session, err);
    if (status == MLA_OK) {
        status = take_steps(session, MLAI_STEP_DECLARE, MLAI_STEP_DECLARE, err);
    }
    if (status == MLA_OK) {
        status = take_steps(session, MLAI_STEP_COMPILE, MLAI_STEP_COMPILE, err);
    }
    if (status == MLA_OK && session->progress.num_requests > 0) {
        status = compile_together(session, err);
    }
    if (status == MLA_OK) {
        status = take_steps(session, MLAI_STEP_LOAD, MLAI_STEP_RELEASE, err);
    }
    if (status == MLA_OK) {
        status = check_cancel(session, err);
    }
    if (status != MLA_OK) {
        roll_back(session);
        atomic_store(&session->is_cancelled, false); /* it was meant for this job */
        return status;
    }
    make_publishable(session);
    mlai_context_log(session->context, MLA_LOG_TIMING, "prepared %d plans in %lld us",
                     session->progress.num_requests,
                     (long long)(mlai_now_ns() - start_ns) / 1000);
    return MLA_OK;
}
