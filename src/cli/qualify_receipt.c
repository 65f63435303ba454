/* qualify_receipt.c - a report as JSON and as a table. */
#include <math.h>
#include <stdio.h>

#include "cli/build_info.h"
#include "cli/json_output.h"
#include "cli/qualify.h"

#define NS_PER_MS 1e6

bool qualify_result_passed(const qualify_result *result)
{
    return !result->failure[0] && result->verdict[QUALIFY_ORDINARY].num_values > 0 &&
           result->verdict[QUALIFY_LARGE].num_values > 0 &&
           result->verdict[QUALIFY_ORDINARY].num_wrong == 0 &&
           result->verdict[QUALIFY_LARGE].num_wrong == 0;
}

static attention_finding worse(const attention_finding *a, const attention_finding *b)
{
    return attention_finding_share(a) > attention_finding_share(b) ? *a : *b;
}

attention_finding qualify_result_worst_output(const qualify_result *result)
{
    return worse(&result->verdict[QUALIFY_ORDINARY].worst_output,
                 &result->verdict[QUALIFY_LARGE].worst_output);
}

attention_finding qualify_result_worst_lse(const qualify_result *result)
{
    return worse(&result->verdict[QUALIFY_ORDINARY].worst_lse,
                 &result->verdict[QUALIFY_LARGE].worst_lse);
}

int32_t qualify_report_num_failed(const qualify_report *report)
{
    int32_t num = 0;
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        num += !qualify_result_passed(&report->results[i]);
    }
    return num;
}

bool qualify_report_passed(const qualify_report *report)
{
    return qualify_report_num_failed(report) == 0 && report->is_balanced;
}

/* ------------------------------------------------------------------------ JSON */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static double error_of(const attention_finding *finding)
{
    return finding->got == finding->expected ? 0 : fabs(finding->got - finding->expected);
}

static json_t *finding_json(const attention_finding *finding)
{
    return json_pack("{s:o, s:o, s:o}", "error", number(error_of(finding)), "bound",
                     number(finding->allowed), "share",
                     number(attention_finding_share(finding)));
}

static json_t *verdict_json(const attention_verdict *verdict)
{
    return json_pack("{s:I, s:I, s:o, s:o}", "values", (json_int_t)verdict->num_values,
                     "wrong", (json_int_t)verdict->num_wrong, "output",
                     finding_json(&verdict->worst_output), "lse",
                     finding_json(&verdict->worst_lse));
}

/* What only some cases have. */
static int add_to_case(json_t *out, const qualify_case *c, const qualify_result *result)
{
    int failed = 0;
    if (c->num_ranks > 1) {
        failed |= json_object_set_new(out, "shard_plan",
                                      json_string(result->plan[QUALIFY_SHARD]));
        failed |= json_object_set_new(out, "from_one_device", finding_json(&result->apart));
    }
    if (result->failure[0]) {
        failed |= json_object_set_new(out, "failure", json_string(result->failure));
    }
    return failed;
}

static json_t *case_json(const qualify_case *c, const qualify_result *result)
{
    attention_finding output = qualify_result_worst_output(result);
    attention_finding lse = qualify_result_worst_lse(result);
    json_t *out =
        json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:I, s:s}", "name",
                  c->name, "passed", (int)qualify_result_passed(result), "error",
                  number(error_of(&output)), "bound", number(output.allowed), "share",
                  number(attention_finding_share(&output)), "lse", finding_json(&lse),
                  "ordinary", verdict_json(&result->verdict[QUALIFY_ORDINARY]), "large",
                  verdict_json(&result->verdict[QUALIFY_LARGE]), "runs",
                  (int)result->num_runs, "pool_reach_bytes",
                  (json_int_t)result->reach_bytes, "plan", result->plan[QUALIFY_WHOLE]);
    if (out && add_to_case(out, c, result) != 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}

static json_t *cases_json(const qualify_report *report)
{
    json_t *cases = json_array();
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        if (json_array_append_new(cases,
                                  case_json(&report->cases[i], &report->results[i])) != 0) {
            json_decref(cases);
            return NULL;
        }
    }
    return cases;
}

static json_t *not_shown_json(const qualify_report *report)
{
    static const char *const always[] = {
        "Ranks on devices of their own: the 16 shards take turns on one device, the host "
        "merges their parts in double precision, and no collective runs.",
        "Speed: nothing is timed but the preparation.",
        "Other shapes than 512 + 64 columns and pages of 64 tokens, fp8_g128 and f32 rows, "
        "windows, attention that is not causal, extend: other suites have these.",
        "Requests longer than 1100 tokens, and more than 25 query rows in one run.",
        "NaN and infinities among the keys that a row sees; only bytes that no row sees "
        "hold them here.",
        "Graphs that the caller captures: replays are of mla_record.",
        "More than one stream, and runs of different threads at once.",
    };
    json_t *out = json_array();
    int failed = out == NULL;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        failed |= json_array_append_new(out, json_string(always[i]));
    }
    if (report->high_bytes < QUALIFY_HIGH_BYTES) {
        failed |= json_array_append_new(
            out,
            json_sprintf("Pages beyond 4 GiB: the device had %lld bytes free, and high "
                         "pages begin at %lld.",
                         (long long)report->free_bytes[QUALIFY_BEFORE],
                         (long long)report->high_bytes));
    }
    if (report->backend == MLA_BACKEND_CPU) {
        failed |= json_array_append_new(
            out, json_string("A GPU. Of pools beyond 4 GiB only the pages in use are "
                             "resident on a CPU."));
    }
    if (report->is_sampled) {
        failed |= json_array_append_new(
            out,
            json_sprintf("Every value of the cases with 96 heads: of each query row one "
                         "head in %d is compared, of another row other heads.",
                         QUALIFY_HEAD_STRIDE));
    }
    if (failed) {
        json_decref(out);
        return NULL;
    }
    return out;
}

static json_t *ledger_json(const qualify_report *report)
{
    return json_pack("{s:o, s:o, s:o, s:b, s:I, s:I}", "before",
                     memory_snapshot_json(&report->ledger[QUALIFY_BEFORE]), "during",
                     memory_snapshot_json(&report->ledger[QUALIFY_DURING]), "after",
                     memory_snapshot_json(&report->ledger[QUALIFY_AFTER]), "balanced",
                     (int)report->is_balanced, "device_free_bytes_before",
                     (json_int_t)report->free_bytes[QUALIFY_BEFORE],
                     "device_free_bytes_after",
                     (json_int_t)report->free_bytes[QUALIFY_AFTER]);
}

static json_t *prepare_json(const qualify_report *report)
{
    const mla_progress *progress = &report->progress;
    return json_pack("{s:i, s:i, s:i, s:o}", "plans", (int)progress->num_requests,
                     "plans_compiled",
                     (int)(progress->num_compiled - progress->num_from_cache),
                     "plans_from_cache", (int)progress->num_from_cache, "ms",
                     json_output_rounded((double)report->prepare_ns / NS_PER_MS));
}

json_t *qualify_receipt(const qualify_report *report)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o}", "commit",
                     MLA_BUILD_COMMIT, "device", report->device, "driver", report->driver,
                     "compiler", report->compiler, "passed",
                     (int)qualify_report_passed(report), "prepare", prepare_json(report),
                     "ledger", ledger_json(report), "cases", cases_json(report),
                     "not_shown", not_shown_json(report));
}

/* ----------------------------------------------------------------------- table */

static void print_case(const qualify_case *c, const qualify_result *result)
{
    attention_finding output = qualify_result_worst_output(result);
    attention_finding lse = qualify_result_worst_lse(result);
    (void)printf("%-27s %-6s %10.3g %10.3g %6.3f %6.3f", c->name,
                 qualify_result_passed(result) ? "passed" : "FAILED", error_of(&output),
                 output.allowed, attention_finding_share(&output),
                 attention_finding_share(&lse));
    if (c->num_ranks > 1) {
        (void)printf(" %6.3f", attention_finding_share(&result->apart));
    }
    (void)printf("\n");
    if (!qualify_result_passed(result)) {
        (void)printf("  %s\n  %s\n", result->failure, result->plan[QUALIFY_WHOLE]);
    }
    if (!qualify_result_passed(result) && c->num_ranks > 1) {
        (void)printf("  %s\n", result->plan[QUALIFY_SHARD]);
    }
}

void qualify_table_print(const qualify_report *report)
{
    (void)printf("%s, driver %s, compiler %s, commit %s\n", report->device, report->driver,
                 report->compiler, MLA_BUILD_COMMIT);
    (void)printf("prepared %d plans (%d from the cache) in %.1f ms\n\n",
                 (int)report->progress.num_requests, (int)report->progress.num_from_cache,
                 (double)report->prepare_ns / NS_PER_MS);
    (void)printf("%-27s %-6s %10s %10s %6s %6s %6s\n", "case", "", "error", "bound",
                 "share", "lse", "apart");
    for (int32_t i = 0; i < QUALIFY_NUM_CASES; i++) {
        print_case(&report->cases[i], &report->results[i]);
    }
    (void)printf("\nledger after: %s\n",
                 report->is_balanced ? "as before" : "NOT as before");
}
