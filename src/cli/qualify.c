/* qualify.c - `mla qualify attention`: prepares all plans of the acceptance matrix at once,
 * runs every case, and writes the receipt. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attention/context.h"
#include "base/clock.h"
#include "base/status.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/json_output.h"
#include "cli/progress_bar.h"
#include "cli/qualify.h"
#include "cli/receipt_file.h"
#include "device/cpu.h"

enum { KEY_DEVICE = 0x100, KEY_OUT, KEY_CACHE, KEY_LIST, KEY_JSON };

typedef struct qualify_options {
    const char *what;
    mla_backend backend;
    const char *out, *cache_dir; /* NULL: none */
    bool is_list, is_json;
} qualify_options;

typedef struct qualify_job {
    mla_context *context;
    mlai_pool *pool;
    mla_plan *plans[QUALIFY_NUM_CASES][QUALIFY_NUM_PARTS];
    qualify_report report;
    mla_status status; /* of the snapshots inside prime */
    mla_error error;
} qualify_job;

static const struct argp_option options[] = {
    {"device", KEY_DEVICE, "cpu|cuda", 0, "what to qualify (default cpu)", 0},
    {"out", KEY_OUT, "FILE", 0, "where the receipt goes, as JSON", 0},
    {"cache", KEY_CACHE, "DIR", 0, "compiled programs are kept there", 0},
    {"list", KEY_LIST, NULL, 0, "print the names of the cases and run none", 0},
    {"json", KEY_JSON, NULL, 0, "print the receipt instead of a table", 0},
    {0},
};

static error_t parse_device(const char *text, qualify_options *out)
{
    if (strcmp(text, "cpu") != 0 && strcmp(text, "cuda") != 0) {
        (void)complain_misuse("--device '%s' is neither cpu nor cuda", text);
        return EINVAL;
    }
    out->backend = !strcmp(text, "cuda") ? MLA_BACKEND_CUDA : MLA_BACKEND_CPU;
    return 0;
}

static error_t check_complete(const qualify_options *out)
{
    if (!out->what || strcmp(out->what, "attention") != 0) {
        (void)complain_misuse("what to qualify is %s%s: attention is what there is",
                              out->what ? "not " : "missing", out->what ? out->what : "");
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    qualify_options *out = state->input;
    const arguments_slot slots[] = {{"attention", &out->what}};
    switch (key) {
    case ARGP_KEY_INIT:
        return arguments_begin(state);
    case KEY_DEVICE:
        return parse_device(text, out);
    case KEY_OUT:
        out->out = text;
        return 0;
    case KEY_CACHE:
        out->cache_dir = text;
        return 0;
    case KEY_LIST:
        out->is_list = true;
        return 0;
    case KEY_JSON:
        out->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return check_complete(out);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp qualify_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "attention",
    .doc =
        "Runs the acceptance matrix of attention: formats, ranks, padding, high pages and "
        "replays, each case against a double-precision reference. The receipt says what "
        "was measured, on what, and what it does not show.",
};

static void print_names(void)
{
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        (void)puts(qualify_case_of(i).name);
    }
}

/* --------------------------------------------------------------------- preparing */

/* Inside of every prime; the one that holds most is kept. */
static void watch_prepare(void *user, const mla_progress *progress)
{
    static memory_snapshot now;
    qualify_job *job = user;
    memory_snapshot *kept = &job->report.ledger[QUALIFY_DURING];
    job->report.progress = *progress;
    if (job->status != MLA_OK) {
        return;
    }
    job->status = memory_snapshot_take(
        job->context, "during", &job->report.ledger[QUALIFY_BEFORE], &now, &job->error);
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
        const qualify_case *c = &job->report.cases[i];
        for (int32_t part = 0; part < QUALIFY_NUM_PARTS && has_part(c, part); part++) {
            mla_caps caps =
                qualify_case_caps(c, (qualify_part)part, job->report.high_bytes);
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
        const qualify_case *c = &job->report.cases[i];
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
    job->report.prepare_ns = -mlai_now_ns();
    MLAI_TRY_OR(end, mla_session_prepare(session, err));
    job->report.prepare_ns += mlai_now_ns();
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
    mla_status status = qualify_input_open(&job->report.cases[first], size, &input, err);
    for (int32_t i = first; i < first + QUALIFY_NUM_KINDS && status == MLA_OK; i++) {
        progress_bar_draw("qualifying", i, QUALIFY_NUM_CASES);
        job->report.is_sampled |= input.head_stride > 1;
        qualify_run(&job->report.cases[i], job->plans[i], job->report.high_bytes, size,
                    &input, &job->report.results[i]);
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

static mla_status measure(qualify_job *job, const char *cache_dir, mla_error *err)
{
    qualify_report *report = &job->report;
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        report->cases[i] = qualify_case_of(i);
    }
    MLAI_TRY(ask_free(report, QUALIFY_BEFORE, err));
    report->high_bytes = high_of(report->free_bytes[QUALIFY_BEFORE]);
    qualify_device_describe(report->backend, report);
    MLAI_TRY(memory_snapshot_take(job->context, "before", NULL,
                                  &report->ledger[QUALIFY_BEFORE], err));
    MLAI_TRY(prepare_and_run(job, cache_dir, err));
    MLAI_TRY(memory_snapshot_take(job->context, "after", &report->ledger[QUALIFY_DURING],
                                  &report->ledger[QUALIFY_AFTER], err));
    report->is_balanced = is_balanced(report);
    (void)ask_free(report, QUALIFY_AFTER, NULL); /* a dead device says nothing: 0 */
    return MLA_OK;
}

/* ------------------------------------------------------------------- the receipt */

static mla_status write_receipt(const qualify_report *report, receipt_file *receipt,
                                mla_error *err)
{
    enum { INDENT = 2, DIGITS = 6 };
    json_t *value = qualify_receipt(report);
    char *text =
        value ? json_dumps(value, JSON_INDENT(INDENT) | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(value);
    MLAI_CHECK(text, MLA_ERR_NO_MEMORY, "the memory for the receipt is out");
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of its NUL */
    mla_status status = receipt_file_finish(receipt, text, length + 1, err);
    json_free_t release = NULL;
    json_get_alloc_funcs(NULL, &release);
    release(text);
    return status;
}

static mla_status publish(const qualify_job *job, const qualify_options *wanted,
                          receipt_file *receipt, mla_error *err)
{
    json_scope before = json_output_begin(job->context);
    mla_status status = wanted->out ? write_receipt(&job->report, receipt, err) : MLA_OK;
    if (status == MLA_OK && wanted->is_json) {
        status = json_output_print(qualify_receipt(&job->report), true, err);
    }
    json_scope_leave(before);
    if (!wanted->is_json) {
        qualify_table_print(&job->report);
    }
    return status;
}

static mla_status qualify(qualify_job *job, const qualify_options *wanted,
                          receipt_file *receipt, mla_error *err)
{
    mla_context_options context = MLA_INIT(mla_context_options);
    context.backend = job->report.backend = wanted->backend;
    MLAI_TRY(mla_context_create(&context, &job->context, err));
    if (wanted->out) {
        MLAI_TRY(receipt_file_open(wanted->out, receipt, err));
    }
    MLAI_TRY(measure(job, wanted->cache_dir, err));
    return publish(job, wanted, receipt, err);
}

static int judge(const qualify_report *report, const qualify_options *wanted)
{
    int32_t num_failed = qualify_report_num_failed(report);
    const char *where = wanted->out ? wanted->out : "the table";
    if (num_failed > 0) {
        return complain_text("%d of %d cases failed: see %s", num_failed, QUALIFY_NUM_CASES,
                             where);
    }
    if (!report->is_balanced) {
        return complain_text("the ledger is not as it was before: see %s", where);
    }
    if (!wanted->is_json) {
        (void)printf("%d cases passed\n", QUALIFY_NUM_CASES);
    }
    return COMMAND_OK;
}

int command_qualify(int argc, char **argv)
{
    static qualify_job job;
    static receipt_file receipt = {.file = -1};
    qualify_options wanted = {.backend = MLA_BACKEND_CPU};
    if (!arguments_parse(&qualify_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    if (wanted.is_list) {
        print_names();
        return COMMAND_OK;
    }
    mla_error error = {0};
    memset(&job, 0, sizeof job);
    mla_status status = qualify(&job, &wanted, &receipt, &error);
    receipt_file_close(&receipt);
    mla_status closed = mla_context_destroy(&job.context, status == MLA_OK ? &error : NULL);
    status = status == MLA_OK ? closed : status;
    return status == MLA_OK ? judge(&job.report, &wanted) : complain(&error);
}
