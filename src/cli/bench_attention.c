/* bench_attention.c - the attention kernels on made-up batches. All rows take turns, round
 * by round, with the limits between them; each keeps its fastest time. */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/bench_row.h"
#include "cli/progress_bar.h"

enum {
    LATENT = 512,
    ROPE = 64,
    PAGE = 64,
    CONTEXT = 4096,
    SLOTS = CONTEXT / PAGE,
    MAX_REQUESTS = 8,
    REPEATS = 3, /* of one row in one round: the first one warms the caches */
};
#define SOFTMAX_SCALE 0.0721687824F /* 1 / sqrt(128 + 64) */

/* Each in the four KV formats. rows: query rows a request. */
static const struct {
    int32_t heads, rows, requests;
} shapes[] = {
    {16, 1, 1},
    {128, 1, 1},
    {16, 1, MAX_REQUESTS},
    {16, 8, MAX_REQUESTS},
};
static const mla_kv_format formats[] = {MLA_KV_F32, MLA_KV_BF16, MLA_KV_FP8,
                                        MLA_KV_FP8_G128};
enum {
    NUM_SHAPES = sizeof shapes / sizeof shapes[0],
    NUM_FORMATS = sizeof formats / sizeof formats[0],
    NUM_ROWS = NUM_SHAPES * NUM_FORMATS,
};
_Static_assert((int)NUM_ROWS <= BENCH_MAX_ROWS, "every row has its place");

static mla_caps caps_of(int shape, mla_kv_format format)
{
    int32_t rows = shapes[shape].rows;
    int32_t requests = shapes[shape].requests;
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = rows > 1 ? MLA_VERIFY : MLA_DECODE;
    caps.kv_format = format;
    caps.query_dtype = MLA_F32;
    caps.output_dtype = MLA_F32;
    caps.num_heads = shapes[shape].heads;
    caps.latent_dim = LATENT;
    caps.rope_dim = ROPE;
    caps.page_tokens = PAGE;
    caps.causal = 1;
    caps.softmax_scale = SOFTMAX_SCALE;
    caps.max_requests = requests;
    caps.max_query_rows = rows * requests;
    caps.max_rows_per_request = rows;
    caps.table_width = SLOTS;
    caps.max_context_tokens = CONTEXT;
    caps.num_pages = (int64_t)SLOTS * requests;
    return caps;
}

static mla_status run_once(const bench_batch *batch, mla_error *err)
{
    return mla_run(batch->call.binding, &batch->batch, (mla_stream){NULL}, err);
}

static mla_status time_row(const bench_batch *batch, bench_row *row, mla_error *err)
{
    for (int i = 0; i < REPEATS; i++) {
        int64_t begin_ns = mlai_now_ns();
        MLAI_TRY(run_once(batch, err));
        bench_keep_best(row, mlai_now_ns() - begin_ns);
    }
    return MLA_OK;
}

static mla_status run_rounds(const bench_batch *batches, const bench_probe *probe,
                             int32_t num_rounds, bench_report *report, mla_error *err)
{
    for (int32_t round = 0; round < num_rounds; round++) {
        progress_bar_draw("timing", round, num_rounds);
        for (int32_t i = 0; i < report->num_rows; i++) {
            bench_probe_measure(probe, &report->limits);
            MLAI_TRY(time_row(&batches[i], &report->rows[i], err));
        }
    }
    return MLA_OK;
}

static mla_status open_shapes(mla_context *context, bench_batch *batches,
                              bench_report *report, mla_error *err)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        mla_caps caps = caps_of(i / NUM_FORMATS, formats[i % NUM_FORMATS]);
        progress_bar_draw("preparing", i, NUM_ROWS);
        MLAI_TRY(bench_batch_open(context, &caps, &batches[i], err));
        report->rows[report->num_rows++] = bench_row_of(&batches[i], NULL);
    }
    return MLA_OK;
}

static mla_status open_plan(mla_context *context, const mla_caps *caps, bench_batch *batch,
                            bench_report *report, mla_error *err)
{
    MLAI_TRY(bench_batch_open(context, caps, batch, err));
    MLAI_TRY(run_once(batch, err));
    MLAI_TRY(bench_batch_check(batch, err));
    report->rows[report->num_rows++] = bench_row_of(batch, NULL);
    return MLA_OK;
}

static mla_status open_plans(mla_context *context, const bench_options *wanted,
                             bench_batch *batches, bench_report *report, mla_error *err)
{
    report->shows_plans = true;
    for (int32_t i = 0; i < wanted->num_plans; i++) {
        progress_bar_draw("checking", i, wanted->num_plans);
        mla_status status =
            open_plan(context, &wanted->plans[i].caps, &batches[i], report, err);
        if (status != MLA_OK) {
            mlai_error_prefix(err, "plan %d", i + 1);
            return status;
        }
    }
    return MLA_OK;
}

mla_status bench_attention(mla_context *context, const bench_options *wanted,
                           bench_report *report, mla_error *err)
{
    static bench_batch batches[BENCH_MAX_ROWS];
    bench_probe probe = {0};
    mla_status status = bench_probe_open(context, &probe, err);
    if (status == MLA_OK) {
        status = wanted->num_plans > 0 ? open_plans(context, wanted, batches, report, err)
                                       : open_shapes(context, batches, report, err);
    }
    if (status == MLA_OK) {
        status = run_rounds(batches, &probe, wanted->num_rounds, report, err);
    }
    for (int32_t i = 0; i < BENCH_MAX_ROWS; i++) {
        bench_batch_free(&batches[i]);
    }
    bench_probe_close(&probe);
    progress_bar_clear();
    return status;
}
