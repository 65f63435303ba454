/* bench_print_cuda.c - CUDA's rows and limits, as a table and as JSON. */
#include <stdio.h>

#include "attention/row_layout.h"
#include "cli/bench.h"
#include "cli/build_info.h"
#include "cli/json_output.h"

#define NS_PER_US    1e3
#define BYTES_PER_US 1e3 /* at 1 GB/s */
#define FLOPS_PER_US 1e6 /* at 1 TFLOP/s */

static double us_of(const bench_row *row)
{
    return (double)row->time_ns / NS_PER_US;
}

double bench_roof_us(const bench_report *report, const bench_row *row)
{
    const bench_device_limits *limits = &report->device_limits;
    double read_us = row->bytes / (limits->read_gbps * BYTES_PER_US);
    double multiply_us = row->flops / (limits->tensor_tflops * FLOPS_PER_US);
    return read_us > multiply_us ? read_us : multiply_us;
}

json_t *bench_cuda_limits(const bench_report *report)
{
    const bench_device_limits *limits = &report->device_limits;
    const bench_preparation *made = &report->preparation;
    return json_pack("{s:o, s:o, s:o, s:o, s:{s:i, s:i, s:o}}", "read_gbps",
                     json_output_rounded(limits->read_gbps), "tensor_tflops",
                     json_output_rounded(limits->tensor_tflops), "launch_us",
                     json_output_rounded(limits->launch_us), "node_us",
                     json_output_rounded(limits->node_us), "preparation", "plans",
                     (int)made->num_plans, "from_cache", (int)made->num_from_cache, "ms",
                     json_output_rounded(made->ms));
}

json_t *bench_cuda_row(const bench_report *report, const bench_row *row)
{
    double roof_us = bench_roof_us(report, row);
    return json_pack("{s:s, s:i, s:i, s:i, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "name",
                     row->name, "heads", (int)row->heads, "rows", (int)row->rows,
                     "requests", (int)row->requests, "context", (json_int_t)row->context,
                     "kv_format", mlai_kv_format_name(row->kv_format), "us",
                     json_output_rounded(us_of(row)), "gbps",
                     json_output_rounded(row->bytes / us_of(row) / BYTES_PER_US), "tflops",
                     json_output_rounded(row->flops / us_of(row) / FLOPS_PER_US), "roof_us",
                     json_output_rounded(roof_us), "share",
                     json_output_rounded(roof_us / us_of(row)), "plan", row->plan);
}

static void print_row(const bench_report *report, const bench_row *row)
{
    double us = us_of(row);
    double roof_us = bench_roof_us(report, row);
    (void)printf("%-20s %-9s %9.1f %7.0f %8.0f %9.1f %6.1f%%\n", row->name,
                 mlai_kv_format_name(row->kv_format), us, row->bytes / us / BYTES_PER_US,
                 row->flops / us / FLOPS_PER_US, roof_us, 100 * roof_us / us);
    if (report->shows_plans) {
        (void)printf("  %s\n", row->plan);
    }
}

void bench_print_cuda(const bench_report *report)
{
    const bench_device_limits *limits = &report->device_limits;
    const bench_preparation *made = &report->preparation;
    (void)printf("%s, commit %s\n", report->device, MLA_BUILD_COMMIT);
    (void)printf("limits: %.0f GB/s read, %.0f TFLOP/s "
                 "of bf16; one empty kernel %.2f us, of 1000 in a graph %.2f us each\n",
                 limits->read_gbps, limits->tensor_tflops, limits->launch_us,
                 limits->node_us);
    (void)printf("prepared %d plans, %d of them from the cache, in %.0f ms\n",
                 (int)made->num_plans, (int)made->num_from_cache, made->ms);
    (void)printf(
        "us: median of graph replays; share: of the roof, which is what reading or "
        "multiplying takes\n\n%-20s %-9s %9s %7s %8s %9s %7s\n",
        "shape", "kv", "us", "GB/s", "TFLOP/s", "roof us", "share");
    for (int32_t i = 0; i < report->num_rows; i++) {
        print_row(report, &report->rows[i]);
    }
}
