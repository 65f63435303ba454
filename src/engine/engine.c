/* engine.c - opening and closing: the model is prepared for this engine's limits, and every
 * byte that a run uses is taken. */
#include "engine/state.h"

static mla_status check_options(const model *target, const engine_options *options,
                                mla_error *err)
{
    int64_t longest = model_config_of(target)->max_positions;
    int64_t wanted = options->max_context_tokens ? options->max_context_tokens : longest;
    MLAI_CHECK(options->max_requests >= 1, MLA_ERR_ARGUMENT,
               "max_requests is %d; at least 1", options->max_requests);
    MLAI_CHECK(wanted >= 1 && wanted <= longest, MLA_ERR_ARGUMENT,
               "a context of %lld tokens; the model's is %lld", (long long)wanted,
               (long long)longest);
    MLAI_CHECK(wanted <= INT32_MAX, MLA_ERR_ARGUMENT,
               "a context of %lld tokens; there are %d at most", (long long)wanted,
               INT32_MAX);
    return MLA_OK;
}

static mla_status prepare_model(engine *self, const engine_options *options, mla_error *err)
{
    model_limits limits = {
        .kv_format = options->kv_format,
        .max_sequences = self->max_requests,
        .max_context_tokens = self->max_context_tokens,
        .num_pages = (int64_t)self->max_requests * self->table_width,
        .progress = options->progress,
        .progress_user = options->progress_user,
        .estimate = options->estimate,
    };
    MLAI_CHECK(limits.num_pages <= INT32_MAX, MLA_ERR_ARGUMENT,
               "%d requests of %lld tokens need %lld pages; there are 2^31-1 at most",
               self->max_requests, (long long)self->max_context_tokens,
               (long long)limits.num_pages);
    return model_prepare(self->model, &limits, err);
}

static void lay_out(engine *self, carve *block)
{
    size_t requests = (size_t)self->max_requests;
    size_t vocab = (size_t)self->vocab_size;
    size_t logit_rows = requests > MODEL_CHUNK_TOKENS ? requests : MODEL_CHUNK_TOKENS;
    self->slots = carve_take(block, requests, sizeof *self->slots);
    self->tables = carve_take(block, requests, (size_t)self->table_width * sizeof(int32_t));
    self->logits = carve_take(block, logit_rows, vocab * sizeof(float));
    self->candidates = carve_take(block, vocab, sizeof *self->candidates);
    self->row_nll = carve_take(block, MODEL_CHUNK_TOKENS, sizeof(double));
    self->step_slots = carve_take(block, requests, sizeof(int32_t));
    self->step_tokens = carve_take(block, requests, sizeof(int32_t));
    self->step_positions = carve_take(block, requests, sizeof(int64_t));
    self->step_tables = carve_take(block, requests, sizeof(int32_t *));
}

/* Slot i owns pages [i * table_width, (i + 1) * table_width). */
static void deal_pages(engine *self)
{
    int64_t num = (int64_t)self->max_requests * self->table_width;
    for (int64_t i = 0; i < num; i++) {
        self->tables[i] = (int32_t)i;
    }
    for (int32_t i = 0; i < self->max_requests; i++) {
        self->slots[i] = (engine_slot){.request = NO_REQUEST};
    }
}

static mla_status take_arena(engine *self, mla_error *err)
{
    carve count = {0};
    lay_out(self, &count);
    MLAI_CHECK(!count.is_overflown, MLA_ERR_ARGUMENT,
               "the state of %d requests does not fit an address space",
               self->max_requests);
    MLAI_TRY(mlai_ledger_take(self->ledger, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS,
                              count.used_bytes, CARVE_ALIGN_BYTES, "the engine's arrays",
                              &self->arena, err));
    self->arena_bytes = count.used_bytes;
    carve deal = {.base = self->arena};
    lay_out(self, &deal);
    deal_pages(self);
    return MLA_OK;
}

mla_status engine_open(model *target, const engine_options *options, engine **out,
                       mla_error *err)
{
    const model_config *config = model_config_of(target);
    mlai_ledger *ledger = mlai_context_ledger(model_context_of(target));
    void *block = NULL;
    mla_status status = MLA_OK;
    MLAI_TRY(check_options(target, options, err));
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, 1, sizeof(engine),
                                     "an engine", &block, err));
    engine *made = block;
    made->model = target;
    made->ledger = ledger;
    made->pool = mlai_context_pool(model_context_of(target));
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
    engine *self = *engine_in;
    if (!self) {
        return;
    }
    mlai_ledger *ledger = self->ledger;
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS, self->arena_bytes,
                     self->arena);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *self, self);
    *engine_in = NULL;
}
