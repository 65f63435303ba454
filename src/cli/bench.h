/* bench.h - what the benchmarks share: the limits of the machine, measured between their
 * rows so that both see the same neighbours, and the rows. */
#ifndef MLA_CLI_BENCH_H
#define MLA_CLI_BENCH_H

#include <jansson.h>

#include "attention/plan_line.h"
#include "cli/bench_limits.h"
#include "cli/model_options.h"

enum { BENCH_MAX_ROWS = 128 };

typedef struct bench_options {
    const char *what;    /* "attention" or "model" */
    model_options model; /* dir: NULL for the demo */
    int32_t num_rounds;  /* of the CPU */
    mla_backend backend;
    const char *shape;     /* part of the names of CUDA's shapes to time; NULL: all */
    const char *cache_dir; /* of compiled kernels; NULL: none */
    uint32_t isa_mask;     /* 0: the best */
    int32_t num_plans;     /* 0: the built-in shapes of attention */
    mlai_plan_line plans[BENCH_MAX_ROWS];
} bench_options;

/* What this machine reaches at most with these threads, the best of all rounds. */
typedef struct bench_limits {
    double fma_gflops; /* multiply-adds in registers with the context's instructions */
    double read_gbps;  /* a sum over more memory than the caches hold */
    int32_t num_threads;
    const char *isa;
} bench_limits;

typedef struct bench_row {
    const char *name;
    int32_t heads, rows, requests; /* rows: query rows a request */
    int64_t context;
    mla_kv_format kv_format;
    int64_t time_ns; /* the fastest of all rounds; on CUDA the median of all replays */
    double flops, bytes;
    double tokens; /* new tokens of one call; 0: the row has no tokens_per_s */
    char plan[MLAI_PLAN_LINE_BYTES]; /* the plan's line; "" for a model */
} bench_row;

/* What making CUDA's plans took. */
typedef struct bench_preparation {
    int32_t num_plans, num_from_cache;
    double ms;
} bench_preparation;

typedef struct bench_report {
    char device[64];
    mla_backend backend;
    bench_limits limits;               /* of the CPU */
    bench_device_limits device_limits; /* of CUDA */
    bench_preparation preparation;     /* of CUDA */
    bench_row rows[BENCH_MAX_ROWS];
    int32_t num_rows;
    bool shows_plans; /* in the table, too: they came by --plan */
} bench_report;

/* Fill the rows and the limits. context: of the CPU, and of CUDA. */
mla_status bench_attention(mla_context *context, const bench_options *wanted,
                           bench_report *report, mla_error *err);
mla_status bench_attention_cuda(mla_context *context, const bench_options *wanted,
                                bench_report *report, mla_error *err);
mla_status bench_model(mla_context *context, const bench_options *wanted,
                       bench_report *report, mla_error *err);

/* Memory for the limits, and one measurement of each; better values replace those there. */
typedef struct bench_probe {
    mla_context *context;
    uint64_t *data; /* larger than the caches; class other */
    mla_isa isa;
} bench_probe;
mla_status bench_probe_open(mla_context *context, bench_probe *out, mla_error *err);
void bench_probe_measure(const bench_probe *probe, bench_limits *limits);
void bench_probe_close(bench_probe *probe);

void bench_keep_best(bench_row *row, int64_t ns);

/* The shortest time that the limits allow: the larger of bytes and operations. CUDA. */
double bench_roof_us(const bench_report *report, const bench_row *row);

/* CUDA's table on standard output; a row of its JSON, and its limits: NULL where memory is
 * out, owned by the caller. */
void bench_print_cuda(const bench_report *report);
json_t *bench_cuda_row(const bench_report *report, const bench_row *row);
json_t *bench_cuda_limits(const bench_report *report);

mla_status bench_print(mla_context *context, const bench_report *report, bool is_json,
                       mla_error *err);

#endif
