/* bench_model.c - prefill and decode of a model, for one sequence and for several. Rows take
 * turns, round by round, with the limits between them; each keeps its fastest time. */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/bench.h"
#include "cli/model_count.h"
#include "cli/progress_bar.h"
#include "model/model.h"

enum {
    CONTEXT = 512,
    MAX_SEQUENCES = 8,
    SLOTS = CONTEXT / MODEL_PAGE_TOKENS + 1,
    STEPS = 4, /* decode steps of a row in a round, all at the same position */
    ALIGN_BYTES = 64,
};
_Static_assert(CONTEXT % MODEL_CHUNK_TOKENS == 0, "prefill is whole chunks");

typedef struct model_bench {
    model *model;
    float *logits; /* [MAX_SEQUENCES][vocab] */
    size_t logits_bytes;
    int32_t tokens[CONTEXT];
    int32_t tables[MAX_SEQUENCES][SLOTS];
} model_bench;

static mla_status prefill(const model_bench *bench, int32_t sequence, mla_error *err)
{
    for (int64_t at = 0; at < CONTEXT; at += MODEL_CHUNK_TOKENS) {
        model_chunk chunk = {
            .tokens = bench->tokens + at,
            .num_tokens = MODEL_CHUNK_TOKENS,
            .first_position = at,
            .block_table = bench->tables[sequence],
            .logits = at + MODEL_CHUNK_TOKENS == CONTEXT ? bench->logits : NULL,
        };
        MLAI_TRY(model_prefill(bench->model, &chunk, err));
    }
    return MLA_OK;
}

static mla_status time_prefill(const model_bench *bench, bench_row *row, mla_error *err)
{
    int64_t begin_ns = mlai_now_ns();
    for (int32_t i = 0; i < row->requests; i++) {
        MLAI_TRY(prefill(bench, i, err));
    }
    bench_keep_best(row, mlai_now_ns() - begin_ns);
    return MLA_OK;
}

/* Every step writes the same position again: all steps do the same work. */
static mla_status time_decode(const model_bench *bench, bench_row *row, mla_error *err)
{
    int64_t positions[MAX_SEQUENCES];
    const int32_t *tables[MAX_SEQUENCES];
    for (int32_t i = 0; i < row->requests; i++) {
        positions[i] = CONTEXT;
        tables[i] = bench->tables[i];
    }
    model_step step = {
        .num_sequences = row->requests,
        .tokens = bench->tokens,
        .positions = positions,
        .block_tables = tables,
        .logits = bench->logits,
    };
    for (int i = 0; i < STEPS; i++) {
        int64_t begin_ns = mlai_now_ns();
        MLAI_TRY(model_decode(bench->model, &step, err));
        bench_keep_best(row, mlai_now_ns() - begin_ns);
    }
    return MLA_OK;
}

static bench_row row_of(const model_config *config, bool is_prefill, int32_t requests,
                        mla_kv_format format)
{
    double row_bytes =
        (double)mla_kv_row_bytes(format, config->kv_lora_rank, config->qk_rope_head_dim);
    model_count count = is_prefill
                            ? model_count_prefill(config, CONTEXT, row_bytes)
                            : model_count_decode(config, requests, CONTEXT + 1, row_bytes);
    double times = is_prefill ? requests : 1;
    return (bench_row){
        .name = is_prefill ? "prefill" : "decode",
        .heads = config->num_heads,
        .rows = is_prefill ? CONTEXT : 1,
        .requests = requests,
        .context = is_prefill ? CONTEXT : CONTEXT + 1,
        .kv_format = format,
        .flops = times * count.flops,
        .bytes = times * count.bytes,
        .tokens = (double)requests * (is_prefill ? CONTEXT : 1),
    };
}

static void list_rows(const model_config *config, mla_kv_format format,
                      bench_report *report)
{
    for (int i = 0; i < 4; i++) {
        report->rows[report->num_rows++] =
            row_of(config, i < 2, i % 2 ? MAX_SEQUENCES : 1, format);
    }
}

static mla_status run_rounds(const model_bench *bench, const bench_probe *probe,
                             int32_t num_rounds, bench_report *report, mla_error *err)
{
    for (int32_t round = 0; round < num_rounds; round++) {
        progress_bar_draw("timing", round, num_rounds);
        for (int32_t i = 0; i < report->num_rows; i++) {
            bench_row *row = &report->rows[i];
            bench_probe_measure(probe, &report->limits);
            MLAI_TRY(row->rows > 1 ? time_prefill(bench, row, err)
                                   : time_decode(bench, row, err));
        }
    }
    return MLA_OK;
}

static void fill_inputs(model_bench *bench, int32_t vocab_size)
{
    uint32_t state = 1;
    for (int32_t i = 0; i < CONTEXT; i++) {
        state = state * 1664525U + 1013904223U;
        bench->tokens[i] = (int32_t)((state >> 8) % (uint32_t)vocab_size);
    }
    for (int32_t i = 0; i < MAX_SEQUENCES * SLOTS; i++) {
        bench->tables[i / SLOTS][i % SLOTS] = i;
    }
}

static mla_status prepare(model_bench *bench, mla_kv_format format, mla_error *err)
{
    const model_config *config = model_config_of(bench->model);
    model_limits limits = {
        .kv_format = format,
        .max_sequences = MAX_SEQUENCES,
        .max_context_tokens = CONTEXT + 1,
        .num_pages = (int64_t)MAX_SEQUENCES * SLOTS,
    };
    void *logits = NULL;
    MLAI_CHECK(config->max_positions > CONTEXT, MLA_ERR_UNSUPPORTED,
               "the model's context of %lld is too short for the %d tokens of this bench",
               (long long)config->max_positions, CONTEXT + 1);
    MLAI_TRY(model_prepare(bench->model, &limits, err));
    bench->logits_bytes =
        (size_t)MAX_SEQUENCES * (size_t)config->vocab_size * sizeof *bench->logits;
    MLAI_TRY(mla_memory_take(model_context_of(bench->model), MLA_SPACE_HOST,
                             MLA_FOR_ACTIVATIONS, bench->logits_bytes, ALIGN_BYTES, &logits,
                             err));
    bench->logits = logits;
    fill_inputs(bench, config->vocab_size);
    return MLA_OK;
}

static mla_status measure(model_bench *bench, const bench_options *wanted,
                          const bench_probe *probe, bench_report *report, mla_error *err)
{
    MLAI_TRY(prepare(bench, wanted->model.kv_format, err));
    list_rows(model_config_of(bench->model), wanted->model.kv_format, report);
    return run_rounds(bench, probe, wanted->num_rounds, report, err);
}

mla_status bench_model(mla_context *context, const bench_options *wanted,
                       bench_report *report, mla_error *err)
{
    static model_bench bench;
    bench_probe probe = {0};
    const char *dir = wanted->model.dir ? wanted->model.dir : "models/demo";
    MLAI_TRY(model_load(context, dir, &bench.model, err));
    mla_status status = bench_probe_open(context, &probe, err);
    if (status == MLA_OK) {
        status = measure(&bench, wanted, &probe, report, err);
    }
    if (bench.logits) {
        mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS, bench.logits_bytes,
                        bench.logits);
    }
    bench_probe_close(&probe);
    model_unload(&bench.model);
    progress_bar_clear();
    return status;
}
