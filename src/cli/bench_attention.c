/* bench_attention.c - the attention kernels on made-up batches. All rows take turns, round
 * by round, with the limits between them; each keeps its fastest time. */
#include <string.h>

#include "attention/count.h"
#include "base/clock.h"
#include "base/status.h"
#include "cli/attention_call.h"
#include "cli/bench.h"
#include "cli/progress_bar.h"

enum {
    LATENT = 512,
    ROPE = 64,
    WIDTH = LATENT + ROPE,
    PAGE = 64,
    CONTEXT = 4096,
    SLOTS = CONTEXT / PAGE,
    MAX_REQUESTS = 8,
    REPEATS = 3, /* of one row in one round: the first one warms the caches */
};
#define SOFTMAX_SCALE 0.0721687824F /* 1 / sqrt(128 + 64) */

/* heads, query rows a request, requests; each in the four KV formats. */
static const struct {
    const char *name;
    int32_t heads, rows, requests;
} shapes[] = {
    {"decode", 16, 1, 1},
    {"decode", 128, 1, 1},
    {"decode", 16, 1, MAX_REQUESTS},
    {"verify", 16, 8, MAX_REQUESTS},
};
static const mla_kv_format formats[] = {MLA_KV_F32, MLA_KV_BF16, MLA_KV_FP8,
                                        MLA_KV_FP8_G128};
enum {
    NUM_SHAPES = sizeof shapes / sizeof shapes[0],
    NUM_FORMATS = sizeof formats / sizeof formats[0],
};
_Static_assert(NUM_SHAPES *NUM_FORMATS <= BENCH_MAX_ROWS, "every row has its place");

static const float kv_scale = 0.015625F;

static mla_caps caps_of(const bench_row *row)
{
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = row->rows > 1 ? MLA_VERIFY : MLA_DECODE;
    caps.kv_format = row->kv_format;
    caps.query_dtype = MLA_F32;
    caps.output_dtype = MLA_F32;
    caps.num_heads = row->heads;
    caps.latent_dim = LATENT;
    caps.rope_dim = ROPE;
    caps.page_tokens = PAGE;
    caps.causal = 1;
    caps.softmax_scale = SOFTMAX_SCALE;
    caps.max_requests = row->requests;
    caps.max_query_rows = row->rows * row->requests;
    caps.max_rows_per_request = row->rows;
    caps.table_width = SLOTS;
    caps.max_context_tokens = CONTEXT;
    caps.num_pages = (int64_t)SLOTS * row->requests;
    return caps;
}

/* Values in [-1, 1) without a pattern that a kernel could profit from. */
static void fill_noise(float *out, size_t num, uint32_t *state)
{
    for (size_t i = 0; i < num; i++) {
        *state = *state * 1664525U + 1013904223U;
        out[i] = (float)(int32_t)*state * 0x1p-31F;
    }
}

static mla_status fill_pool(const attention_call *call, int64_t num_pages,
                            const float *scale, mla_error *err)
{
    static float rows[PAGE * WIDTH];
    uint32_t state = 1;
    for (int64_t page = 0; page < num_pages; page++) {
        fill_noise(rows, sizeof rows / sizeof rows[0], &state);
        MLAI_TRY(attention_call_append(call, rows, WIDTH * sizeof(float), page * PAGE, PAGE,
                                       scale, err));
    }
    return MLA_OK;
}

/* Pages lie in the pool in another order than in the table. */
static void fill_batch(const attention_call *call, const bench_row *row)
{
    enum { STRIDE = 29 }; /* odd: each page once, as the number of pages is a power of 2 */
    int32_t *table = call->block_table.data;
    int32_t *lens = call->context_lens.data;
    int32_t *starts = call->query_starts.data;
    int32_t num_pages = SLOTS * row->requests;
    uint32_t state = 2;
    for (int32_t i = 0; i < num_pages; i++) {
        table[i] = i * STRIDE % num_pages;
    }
    for (int32_t i = 0; i < row->requests; i++) {
        lens[i] = CONTEXT;
        starts[i + 1] = (i + 1) * row->rows;
    }
    starts[0] = 0;
    fill_noise(call->query.data, call->query.bytes / sizeof(float), &state);
}

static void count_work(const attention_call *call, const mla_caps *caps, bench_row *row)
{
    mlai_attention_count count = mlai_attention_count_of(
        caps, row->requests, call->context_lens.data, call->query_starts.data);
    row->flops = count.flops;
    row->bytes = count.bytes;
}

static mla_status open_row(attention_call *call, bench_row *row, mla_error *err)
{
    const float *scale = row->kv_format == MLA_KV_FP8 ? &kv_scale : NULL;
    mla_caps caps = caps_of(row);
    MLAI_TRY(attention_call_plan(call, &caps, err));
    MLAI_TRY(fill_pool(call, caps.num_pages, scale, err));
    fill_batch(call, row);
    count_work(call, &caps, row);
    return attention_call_bind(call, scale, NULL, err);
}

static mla_status time_row(const attention_call *call, bench_row *row, mla_error *err)
{
    mla_batch batch = MLA_INIT(mla_batch);
    batch.num_requests = row->requests;
    batch.num_query_rows = row->rows * row->requests;
    batch.max_context_tokens = CONTEXT;
    for (int i = 0; i < REPEATS; i++) {
        int64_t begin_ns = mlai_now_ns();
        MLAI_TRY(mla_run(call->binding, &batch, (mla_stream){NULL}, err));
        bench_keep_best(row, mlai_now_ns() - begin_ns);
    }
    return MLA_OK;
}

static mla_status run_rounds(const attention_call *calls, const bench_probe *probe,
                             int32_t num_rounds, bench_report *report, mla_error *err)
{
    for (int32_t round = 0; round < num_rounds; round++) {
        progress_bar_draw("timing", round, num_rounds);
        for (int32_t i = 0; i < report->num_rows; i++) {
            bench_probe_measure(probe, &report->limits);
            MLAI_TRY(time_row(&calls[i], &report->rows[i], err));
        }
    }
    return MLA_OK;
}

static void list_rows(bench_report *report)
{
    for (int i = 0; i < NUM_SHAPES * NUM_FORMATS; i++) {
        report->rows[report->num_rows++] = (bench_row){
            .name = shapes[i / NUM_FORMATS].name,
            .heads = shapes[i / NUM_FORMATS].heads,
            .rows = shapes[i / NUM_FORMATS].rows,
            .requests = shapes[i / NUM_FORMATS].requests,
            .context = CONTEXT,
            .kv_format = formats[i % NUM_FORMATS],
        };
    }
}

mla_status bench_attention(mla_context *context, const bench_options *wanted,
                           bench_report *report, mla_error *err)
{
    static attention_call calls[BENCH_MAX_ROWS];
    bench_probe probe = {0};
    mla_status status = bench_probe_open(context, &probe, err);
    list_rows(report);
    for (int32_t i = 0; status == MLA_OK && i < report->num_rows; i++) {
        progress_bar_draw("preparing", i, report->num_rows);
        calls[i] = (attention_call){.context = context};
        status = open_row(&calls[i], &report->rows[i], err);
    }
    if (status == MLA_OK) {
        status = run_rounds(calls, &probe, wanted->num_rounds, report, err);
    }
    for (int32_t i = 0; i < report->num_rows; i++) {
        attention_call_free(&calls[i]);
    }
    bench_probe_close(&probe);
    progress_bar_clear();
    return status;
}
