/* qualify_measure.c - all plans of the acceptance matrix prepared at once, then every case, with
 * the ledger before, during and after. */
#include <stdio.h>
#include <string.h>

#include "attention/context.h"
#include "base/clock.h"
#include "base/status.h"
#include "cli/progress_bar.h"
#include "cli/qualify.h"
#include "device/cpu.h"

typedef struct qualify_job {
    mla_context *context;
    mlai_pool *pool;
    mla_plan *plans[QUALIFY_NUM_CASES][QUALIFY_NUM_PARTS];
    qualify_report *report;
    mla_status status; /* of the snapshots inside prime */
    mla_error error;
} qualify_job;

/* --------------------------------------------------------------------- preparing */

/* Inside of every prime; the one that holds most is kept. */
static void watch_prepare(void *user, const mla_progress *progress)
{
    static memory_snapshot now;
    qualify_job *job = user;
    memory_snapshot *kept = &job->report->ledger[QUALIFY_DURING];
    job->report->progress = *progress;
    if (job->status != MLA_OK) {
        return;
    }
    job->status = memory_snapshot_take(
        job->context, "during", &job->report->ledger[QUALIFY_BEFORE], &now, &job->error);
    if (job->status == MLA_OK &&
        (!kept->phase || memory_snapshot_now(&now, MLA_FOR_SESSION) >
                             memory_snapshot_now(kept, MLA_FOR_SESSION))) {
        *kept = now;
    }
}

static bool has_part(const qualify_case *c, int32_t part)
{
    return part == QUALIFY_WHOLE || c->num_ranks > 1;
}

static mla_status add_all(qualify_job *job, mla_session *session,
                          mla_ticket tickets[QUALIFY_NUM_CASES][QUALIFY_NUM_PARTS],
                          mla_error *err)
{
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        const qualify_case *c = &job->report->cases[i];
        for (int32_t part = 0; part < QUALIFY_NUM_PARTS && has_part(c, part); part++) {
            mla_caps caps =
                qualify_case_caps(c, (qualify_part)part, job->report->high_bytes);
            MLAI_TRY(mla_session_add(session, &caps, NULL, &tickets[i][part], err));
        }
    }
    return MLA_OK;
}

static mla_status publish_all(qualify_job *job, mla_session *session,
                              mla_ticket tickets[QUALIFY_NUM_CASES][QUALIFY_NUM_PARTS],
                              mla_error *err)
{
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        const qualify_case *c = &job->report->cases[i];
        for (int32_t part = 0; part < QUALIFY_NUM_PARTS && has_part(c, part); part++) {
            MLAI_TRY(
                mla_session_publish(session, tickets[i][part], &job->plans[i][part], err));
        }
    }
    return MLA_OK;
}

/* All plans in one session: what they share is compiled once. */
static mla_status prepare(qualify_job *job, const char *cache_dir, mla_error *err)
{
    mla_ticket tickets[QUALIFY_NUM_CASES][QUALIFY_NUM_PARTS];
    mla_session *session = NULL;
    mla_status status = MLA_OK;
    mla_session_options wanted = MLA_INIT(mla_session_options);
    wanted.cache_dir = cache_dir;
    wanted.progress = watch_prepare;
    wanted.progress_user = job;
    MLAI_TRY(mla_session_open(job->context, &wanted, &session, err));
    MLAI_TRY_OR(end, add_all(job, session, tickets, err));
    job->report->prepare_ns = -mlai_now_ns();
    MLAI_TRY_OR(end, mla_session_prepare(session, err));
    job->report->prepare_ns += mlai_now_ns();
    MLAI_TRY_OR(end, publish_all(job, session, tickets, err));
    if (job->status != MLA_OK) {
        *err = job->error;
        status = job->status;
    }
end:
    mla_session_close(&session);
    return status;
}

static void release_plans(qualify_job *job)
{
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        for (int32_t part = 0; part < QUALIFY_NUM_PARTS; part++) {
            mla_plan_release(&job->plans[i][part]);
        }
    }
}

/* ----------------------------------------------------------------------- running */

/* Cases of the same formats and heads attend to the same requests. */
static mla_status run_group(qualify_job *job, int32_t first, qualify_size size,
                            mla_error *err)
{
    static qualify_input input;
    memset(&input, 0, sizeof input);
    input.context = job->context;
    input.pool = job->pool;
    mla_status status = qualify_input_open(&job->report->cases[first], size, &input, err);
    for (int32_t i = first; i < first + QUALIFY_NUM_KINDS && status == MLA_OK; i++) {
        progress_bar_draw("qualifying", i, QUALIFY_NUM_CASES);
        job->report->is_sampled |= input.head_stride > 1;
        qualify_run(&job->report->cases[i], job->plans[i], job->report->high_bytes, size,
                    &input, &job->report->results[i]);
    }
    qualify_input_close(&input);
    return status;
}

static mla_status run_all(qualify_job *job, mla_error *err)
{
    for (int32_t first = 0; first < QUALIFY_NUM_CASES; first += QUALIFY_NUM_KINDS) {
        for (int size = 0; size < QUALIFY_NUM_SIZES; size++) {
            MLAI_TRY(run_group(job, first, (qualify_size)size, err));
        }
    }
    return MLA_OK;
}

static bool is_balanced(const qualify_report *report)
{
    const mla_memory_report *before = &report->ledger[QUALIFY_BEFORE].report;
    const mla_memory_report *after = &report->ledger[QUALIFY_AFTER].report;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
            if (before->cell[space][purpose].now_bytes !=
                after->cell[space][purpose].now_bytes) {
                return false;
            }
        }
    }
    return true;
}

/* Between the snapshots before and after. Everything that it takes, it gives back. */
static mla_status prepare_and_run(qualify_job *job, const char *cache_dir, mla_error *err)
{
    mla_status status = MLA_OK;
    MLAI_TRY(mlai_pool_start(mlai_context_ledger(job->context), mlai_cpu_count(),
                             &job->pool, err));
    MLAI_TRY_OR(end, prepare(job, cache_dir, err));
    MLAI_TRY_OR(end, run_all(job, err));
end:
    progress_bar_clear();
    release_plans(job);
    mlai_pool_stop(&job->pool);
    return status;
}

static mla_status ask_free(qualify_report *report, int phase, mla_error *err)
{
    mla_device_info info = MLA_INIT(mla_device_info);
    MLAI_TRY(mla_query_device(report->backend, 0, &info, err));
    (void)snprintf(report->device, sizeof report->device, "%s", info.name);
    report->free_bytes[phase] = info.free_bytes;
    return MLA_OK;
}

/* As high as 4 GiB if the device has twice that, for a pool beside all else. */
static int64_t high_of(uint64_t free_bytes)
{
    enum { SHARE = 4 };
    return free_bytes / 2 < (uint64_t)QUALIFY_HIGH_BYTES ? (int64_t)(free_bytes / SHARE)
                                                         : QUALIFY_HIGH_BYTES;
}

mla_status qualify_measure(mla_context *context, const char *cache_dir,
                           qualify_report *report, mla_error *err)
{
    static qualify_job job;
    memset(&job, 0, sizeof job);
    job.context = context;
    job.report = report;
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        report->cases[i] = qualify_case_of(i);
    }
    MLAI_TRY(ask_free(report, QUALIFY_BEFORE, err));
    report->high_bytes = high_of(report->free_bytes[QUALIFY_BEFORE]);
    qualify_device_describe(report->backend, report);
    MLAI_TRY(memory_snapshot_take(context, "before", NULL, &report->ledger[QUALIFY_BEFORE],
                                  err));
    MLAI_TRY(prepare_and_run(&job, cache_dir, err));
    MLAI_TRY(memory_snapshot_take(context, "after", &report->ledger[QUALIFY_DURING],
                                  &report->ledger[QUALIFY_AFTER], err));
    report->is_balanced = is_balanced(report);
    (void)ask_free(report, QUALIFY_AFTER, NULL); /* a dead device says nothing: 0 */
    return MLA_OK;
}
