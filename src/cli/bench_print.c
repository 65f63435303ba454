/* bench_print.c - a report as JSON or as a table. */
#include <stdio.h>

#include "attention/row_layout.h"
#include "cli/bench.h"
#include "cli/build_info.h"
#include "cli/json_output.h"

#define NS_PER_US 1e3
#define NS_PER_S  1e9

static double gflops_of(const bench_row *row)
{
    return row->flops / (double)row->time_ns;
}

static double gbps_of(const bench_row *row)
{
    return row->bytes / (double)row->time_ns;
}

static double share_of(const bench_report *report, const bench_row *row)
{
    return gflops_of(row) / report->limits.fma_gflops;
}

static double tokens_per_s_of(const bench_row *row)
{
    return row->tokens * NS_PER_S / (double)row->time_ns;
}

static json_t *row_of(const bench_report *report, const bench_row *row)
{
    json_t *out = json_pack(
        "{s:s, s:i, s:i, s:i, s:I, s:s, s:o, s:o, s:o, s:o}", "name", row->name, "heads",
        row->heads, "rows", row->rows, "requests", row->requests, "context",
        (json_int_t)row->context, "kv_format", mlai_kv_format_name(row->kv_format), "us",
        json_output_rounded((double)row->time_ns / NS_PER_US), "gflops",
        json_output_rounded(gflops_of(row)), "gbps", json_output_rounded(gbps_of(row)),
        "share", json_output_rounded(share_of(report, row)));
    if (row->tokens > 0 &&
        json_object_set_new(out, "tokens_per_s",
                            json_output_rounded(tokens_per_s_of(row))) != 0) {
        json_decref(out);
        return NULL;
    }
    if (row->plan[0] && json_object_set_new(out, "plan", json_string(row->plan)) != 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}

static json_t *rows_of(const bench_report *report)
{
    json_t *rows = json_array();
    for (int32_t i = 0; i < report->num_rows; i++) {
        const bench_row *row = &report->rows[i];
        json_t *out = report->backend == MLA_BACKEND_CUDA ? bench_cuda_row(report, row)
                                                          : row_of(report, row);
        if (json_array_append_new(rows, out) != 0) {
            json_decref(rows);
            return NULL;
        }
    }
    return rows;
}

static json_t *limits_of(const bench_report *report)
{
    const bench_limits *limits = &report->limits;
    return json_pack("{s:o, s:o, s:i, s:s}", "fma_gflops",
                     json_output_rounded(limits->fma_gflops), "read_gbps",
                     json_output_rounded(limits->read_gbps), "threads", limits->num_threads,
                     "isa", limits->isa);
}

static json_t *report_of(const bench_report *report)
{
    json_t *limits =
        report->backend == MLA_BACKEND_CUDA ? bench_cuda_limits(report) : limits_of(report);
    return json_pack("{s:s, s:s, s:o, s:o}", "commit", MLA_BUILD_COMMIT, "device",
                     report->device, "limits", limits, "rows", rows_of(report));
}

static void print_row(const bench_report *report, const bench_row *row)
{
    (void)printf("%-8s %5d %5d %8d %7lld %-9s %10.1f %8.1f %7.2f %6.1f%%", row->name,
                 (int)row->heads, (int)row->rows, (int)row->requests,
                 (long long)row->context, mlai_kv_format_name(row->kv_format),
                 (double)row->time_ns / NS_PER_US, gflops_of(row), gbps_of(row),
                 100 * share_of(report, row));
    if (row->tokens > 0) {
        (void)printf(" %10.1f", tokens_per_s_of(row));
    }
    (void)printf("\n");
    if (report->shows_plans) {
        (void)printf("  %s\n", row->plan);
    }
}

static void print_table(const bench_report *report)
{
    const bench_limits *limits = &report->limits;
    bool has_tokens = report->num_rows > 0 && report->rows[0].tokens > 0;
    (void)printf("%s, %d threads, %s, commit %s\n", report->device,
                 (int)limits->num_threads, limits->isa, MLA_BUILD_COMMIT);
    (void)printf("limits: %.1f GFLOP/s of multiply-adds in registers, which `share` is of; "
                 "%.1f GB/s read\n\n",
                 limits->fma_gflops, limits->read_gbps);
    (void)printf("%-8s %5s %5s %8s %7s %-9s %10s %8s %7s %7s%s\n", "name", "heads", "rows",
                 "requests", "context", "kv", "us", "GFLOP/s", "GB/s", "share",
                 has_tokens ? "   tokens/s" : "");
    for (int32_t i = 0; i < report->num_rows; i++) {
        print_row(report, &report->rows[i]);
    }
}

mla_status bench_print(mla_context *context, const bench_report *report, bool is_json,
                       mla_error *err)
{
    if (!is_json && report->backend == MLA_BACKEND_CUDA) {
        bench_print_cuda(report);
        return MLA_OK;
    }
    if (!is_json) {
        print_table(report);
        return MLA_OK;
    }
    json_scope before = json_output_begin(context);
    mla_status status = json_output_print(report_of(report), true, err);
    json_scope_leave(before);
    return status;
}
