/* plan.c - `mla plan`: whether a deployment fits, class by class, from its profile alone. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/json_output.h"
#include "cli/plan_report.h"

enum { KEY_CONCURRENCY = 0x100, KEY_JSON };

typedef struct plan_options {
    const char *path;
    int32_t concurrency; /* 0: the profile's */
    bool is_json;
} plan_options;

static const struct argp_option options[] = {
    {"concurrency", KEY_CONCURRENCY, "N", 0, "requests together (default: the profile's)",
     0},
    {"json", KEY_JSON, NULL, 0, "print one JSON value", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    plan_options *out = state->input;
    const arguments_slot slots[] = {{"PROFILE.json", &out->path}};
    switch (key) {
    case ARGP_KEY_INIT:
        return arguments_begin(state);
    case KEY_CONCURRENCY:
        return arguments_integer32("--concurrency", text, 1, PROFILE_MAX_CONCURRENCY,
                                   &out->concurrency);
    case KEY_JSON:
        out->is_json = true;
        return 0;
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return arguments_check_filled(slots, 1);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp plan_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "PROFILE.json",
    .doc =
        "Says whether a deployment fits its devices: what each class of memory takes on a "
        "rank, how many tokens a GiB holds, and how many requests fit together. Nothing "
        "is loaded and no device is asked. Exits with 0 where it fits and with 3 where it "
        "does not. profiles/ has examples, and docs/plan.md walks through one.",
};

static mla_status read_profile(mla_context *context, const char *path, profile *out,
                               mla_error *err)
{
    static char dir[4096];
    const char *slash = strrchr(path, '/');
    size_t bytes = slash ? (size_t)(slash - path) + 1 : 0;
    MLAI_CHECK(bytes < sizeof dir, MLA_ERR_ARGUMENT,
               "the directory of %.60s has a name of %zu bytes", path, bytes);
    memcpy(dir, path, bytes);
    dir[bytes] = 0;
    return profile_read(mlai_context_ledger(context), slash ? dir : ".",
                        slash ? slash + 1 : path, out, err);
}

static mla_status print_report(mla_context *context, const plan_report *report,
                               bool is_json, mla_error *err)
{
    if (!is_json) {
        plan_table_print(report);
        return MLA_OK;
    }
    json_scope before = json_output_begin(context);
    mla_status status = json_output_print(plan_report_json(report), true, err);
    json_scope_leave(before);
    return status;
}

static mla_status plan(mla_context *context, const plan_options *wanted,
                       footprint_verdict *verdict, mla_error *err)
{
    static profile from;
    static footprint print;
    const plan_report report = {.profile = &from, .print = &print, .verdict = verdict};
    mla_status status = MLA_OK;
    MLAI_TRY(read_profile(context, wanted->path, &from, err));
    int32_t concurrency =
        wanted->concurrency ? wanted->concurrency : (int32_t)from.is.concurrency;
    MLAI_TRY_OR(done, footprint_of(&from, concurrency, &print, err));
    footprint_admit(&from, &print, verdict);
    MLAI_TRY_OR(done, print_report(context, &report, wanted->is_json, err));
done:
    profile_close(&from);
    return status;
}

int command_plan(int argc, char **argv)
{
    plan_options wanted = {0};
    mla_context_options plain = MLA_INIT(mla_context_options);
    mla_context *context = NULL;
    mla_error error = {0};
    footprint_verdict verdict = {0};
    if (!arguments_parse(&plan_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    plain.backend = MLA_BACKEND_CPU;
    plain.num_threads = 1;
    mla_status status = mla_context_create(&plain, &context, &error);
    if (status == MLA_OK) {
        status = plan(context, &wanted, &verdict, &error);
    }
    mla_status closed = mla_context_destroy(&context, status == MLA_OK ? &error : NULL);
    if (status != MLA_OK || closed != MLA_OK) {
        return complain(&error);
    }
    return verdict.fits ? COMMAND_OK : COMMAND_DOES_NOT_FIT;
}
