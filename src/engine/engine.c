/* engine.c - opening and closing: the model is prepared for this engine's limits, and every
 * byte that a run uses is taken. */
#include "engine/state.h"

static mla_status check_options(const model *model, const engine_options *options,
                                mla_error *err)
{
    int64_t longest = model_config_of(model)->max_positions;
    MLAI_CHECK(options->max_requests >= 1, MLA_ERR_ARGUMENT,
               "max_requests is %d; at least 1", options->max_requests);
    MLAI_CHECK(options->max_context_tokens >= 0 && options->max_context_tokens <= longest,
               MLA_ERR_ARGUMENT, "a context of %lld tokens; the model's is %lld",
               (long long)options->max_context_tokens, (long long)longest);
    return MLA_OK;
}

static mla_status prepare_model(engine *engine, const engine_options *options,
                                mla_error *err)
{
    model_limits limits = {
        .kv_format = options->kv_format,
        .max_sequences = engine->max_requests,
        .max_context_tokens = engine->max_context_tokens,
        .num_pages = (int64_t)engine->max_requests * engine->table_width,
        .progress = options->progress,
        .progress_user = options->progress_user,
    };
    MLAI_CHECK(limits.num_pages <= INT32_MAX, MLA_ERR_ARGUMENT,
               "%d requests of %lld tokens need %lld pages; there are 2^31-1 at most",
               engine->max_requests, (long long)engine->max_context_tokens,
               (long long)limits.num_pages);
    return model_prepare(engine->model, &limits, err);
}

static void lay_out(engine *engine, carve *block)
{
    size_t requests = (size_t)engine->max_requests;
    size_t vocab = (size_t)engine->vocab_size;
    size_t logit_rows = requests > MODEL_CHUNK_TOKENS ? requests : MODEL_CHUNK_TOKENS;
    engine->slots = carve_take(block, requests, sizeof *engine->slots);
    engine->tables =
        carve_take(block, requests, (size_t)engine->table_width * sizeof(int32_t));
    engine->logits = carve_take(block, logit_rows, vocab * sizeof(float));
    engine->candidates = carve_take(block, vocab, sizeof *engine->candidates);
    engine->row_nll = carve_take(block, MODEL_CHUNK_TOKENS, sizeof(double));
    engine->step_slots = carve_take(block, requests, sizeof(int32_t));
    engine->step_tokens = carve_take(block, requests, sizeof(int32_t));
    engine->step_positions = carve_take(block, requests, sizeof(int64_t));
    engine->step_tables = carve_take(block, requests, sizeof(int32_t *));
}

/* Slot i owns pages [i * table_width, (i + 1) * table_width). */
static void deal_pages(engine *engine)
{
    int64_t num = (int64_t)engine->max_requests * engine->table_width;
    for (int64_t i = 0; i < num; i++) {
        engine->tables[i] = (int32_t)i;
    }
    for (int32_t i = 0; i < engine->max_requests; i++) {
        engine->slots[i] = (slot){.request = NO_REQUEST};
    }
}

static mla_status take_arena(engine *engine, mla_error *err)
{
    carve count = {0};
    lay_out(engine, &count);
    MLAI_CHECK(!count.is_overflown, MLA_ERR_ARGUMENT,
               "the state of %d requests does not fit an address space",
               engine->max_requests);
    MLAI_TRY(mlai_ledger_take(engine->ledger, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS,
                              count.used_bytes, CARVE_ALIGN_BYTES, "the engine's arrays",
                              &engine->arena, err));
    engine->arena_bytes = count.used_bytes;
    carve deal = {.base = engine->arena};
    lay_out(engine, &deal);
    deal_pages(engine);
    return MLA_OK;
}

mla_status engine_open(model *model, const engine_options *options, engine **out,
                       mla_error *err)
{
    const model_config *config = model_config_of(model);
    mlai_ledger *ledger = mlai_context_ledger(model_context_of(model));
    void *block = NULL;
    mla_status status = MLA_OK;
    MLAI_TRY(check_options(model, options, err));
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, 1, sizeof(engine),
                                     "an engine", &block, err));
    engine *made = block;
    made->model = model;
    made->ledger = ledger;
    made->pool = mlai_context_pool(model_context_of(model));
    made->vocab_size = config->vocab_size;
    made->max_requests = options->max_requests;
    made->max_context_tokens =
        options->max_context_tokens ? options->max_context_tokens : config->max_positions;
    made->table_width = (int32_t)mlai_ceil_div(made->max_context_tokens, MODEL_PAGE_TOKENS);
    MLAI_TRY_OR(fail, take_arena(made, err));
    MLAI_TRY_OR(fail, prepare_model(made, options, err));
    *out = made;
    return MLA_OK;
fail:
    engine_close(&made);
    return status;
}

void engine_close(engine **engine_in)
{
    engine *engine = *engine_in;
    if (!engine) {
        return;
    }
    mlai_ledger *ledger = engine->ledger;
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS, engine->arena_bytes,
                     engine->arena);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *engine, engine);
    *engine_in = NULL;
}
