/* engine.c - opening and closing: the model is prepared for this engine's limits, and every
 * byte that a step uses is taken. */
#include "engine/engine.h"

#include <string.h>
#include <sys/random.h>

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
    MLAI_CHECK(options->draft_tokens >= 0 && options->draft_tokens <= ENGINE_MAX_DRAFT,
               MLA_ERR_ARGUMENT, "%d draft tokens; 0 to %d", options->draft_tokens,
               ENGINE_MAX_DRAFT);
    MLAI_CHECK(options->default_max_tokens >= 0, MLA_ERR_ARGUMENT,
               "a default of %lld new tokens; 0 or more",
               (long long)options->default_max_tokens);
    return MLA_OK;
}

static uint64_t page_bytes(const engine *self)
{
    const model_config *config = model_config_of(self->model);
    return (uint64_t)config->num_layers * MODEL_PAGE_TOKENS *
           mla_kv_row_bytes(self->options.kv_format, config->kv_lora_rank,
                            config->qk_rope_head_dim);
}

static mla_status count_pages(engine *self, mla_error *err)
{
    uint64_t wanted = (uint64_t)self->limits.max_requests * (uint64_t)self->table_width;
    uint64_t bytes = page_bytes(self);
    if (self->options.kv_bytes) {
        wanted = self->options.kv_bytes / bytes;
        MLAI_CHECK(wanted >= 1, MLA_ERR_ARGUMENT,
                   "%llu bytes of KV hold no page, which has %llu",
                   (unsigned long long)self->options.kv_bytes, (unsigned long long)bytes);
    }
    MLAI_CHECK(wanted <= INT32_MAX, MLA_ERR_ARGUMENT,
               "%d requests of %lld tokens in %llu pages; there are 2^31-1 at most",
               self->limits.max_requests, (long long)self->limits.max_context_tokens,
               (unsigned long long)wanted);
    self->limits.num_pages = (int32_t)wanted;
    self->limits.page_bytes = bytes;
    return MLA_OK;
}

static void choose_drafter(engine *self)
{
    if (self->options.draft_tokens > 0) {
        self->ngram = ngram_drafter();
        self->drafter = self->options.drafter ? self->options.drafter : &self->ngram;
        self->feature_width = (size_t)self->drafter->num_feature_layers *
                              (size_t)model_config_of(self->model)->hidden_size;
    }
}

static mla_status set_limits(engine *self, mla_error *err)
{
    const model_config *config = model_config_of(self->model);
    const engine_options *options = &self->options;
    int64_t context = options->max_context_tokens;
    self->limits = (engine_limits){
        .max_requests = options->max_requests,
        .draft_tokens = options->draft_tokens,
        .page_tokens = MODEL_PAGE_TOKENS,
        .vocab_size = config->vocab_size,
        .max_context_tokens = context ? context : config->max_positions,
        .default_max_tokens = options->default_max_tokens,
    };
    self->vocab_size = config->vocab_size;
    self->step_rows = 1 + options->draft_tokens;
    self->table_width =
        (int32_t)mlai_ceil_div(self->limits.max_context_tokens, MODEL_PAGE_TOKENS);
    choose_drafter(self);
    return count_pages(self, err);
}

static mla_status prepare_model(engine *self, mla_error *err)
{
    const engine_options *options = &self->options;
    model_limits limits = {
        .kv_format = options->kv_format,
        .max_sequences = self->limits.max_requests,
        .max_step_rows = self->step_rows,
        .max_context_tokens = self->limits.max_context_tokens,
        .num_pages = self->limits.num_pages,
        .feature_layers = self->drafter ? self->drafter->feature_layers : NULL,
        .num_feature_layers = self->drafter ? self->drafter->num_feature_layers : 0,
        .progress = options->progress,
        .progress_user = options->progress_user,
        .estimate = options->estimate,
    };
    return model_prepare(self->model, &limits, err);
}

static void lay_out_slots(engine *self, carve *block)
{
    size_t requests = (size_t)self->limits.max_requests;
    size_t context = (size_t)self->limits.max_context_tokens;
    size_t width = (size_t)self->table_width;
    size_t vocab = (size_t)self->vocab_size;
    self->slots = carve_take(block, requests, sizeof *self->slots);
    int32_t *tokens = carve_take(block, requests, context * sizeof *tokens);
    int32_t *tables = carve_take(block, requests, width * sizeof *tables);
    uint32_t *counts = carve_take(block, requests, vocab * sizeof *counts);
    if (block->base) {
        memset(counts, 0, requests * vocab * sizeof *counts);
    }
    for (size_t i = 0; block->base && i < requests; i++) {
        self->slots[i] = (engine_slot){.tokens = tokens + i * context,
                                       .table = tables + i * width,
                                       .counts = counts + i * vocab};
    }
}

static void lay_out_step(engine *self, carve *block)
{
    size_t requests = (size_t)self->limits.max_requests;
    size_t rows = requests * (size_t)self->step_rows;
    self->step_slots = carve_take(block, requests, sizeof *self->step_slots);
    self->step_rows_of = carve_take(block, requests, sizeof *self->step_rows_of);
    self->step_positions = carve_take(block, requests, sizeof *self->step_positions);
    self->step_tables = carve_take(block, requests, sizeof *self->step_tables);
    self->drafts = carve_take(block, requests, sizeof *self->drafts);
    self->step_tokens = carve_take(block, rows, sizeof *self->step_tokens);
}

static size_t logit_rows(const engine *self)
{
    size_t rows = (size_t)self->limits.max_requests * (size_t)self->step_rows;
    bool is_enough = rows > MODEL_CHUNK_TOKENS || !self->options.scores_texts;
    return is_enough ? rows : MODEL_CHUNK_TOKENS;
}

static void lay_out(engine *self, carve *block)
{
    size_t vocab = (size_t)self->vocab_size;
    size_t rows = logit_rows(self);
    size_t pass_rows = rows > MODEL_CHUNK_TOKENS ? rows : MODEL_CHUNK_TOKENS;
    lay_out_slots(self, block);
    lay_out_step(self, block);
    pages_lay_out(&self->pages, self->limits.num_pages, block);
    self->logits = carve_take(block, rows, vocab * sizeof(float));
    self->row_nll = carve_take(block, rows, sizeof(double));
    if (self->feature_width > 0) {
        self->features = carve_take(block, pass_rows, self->feature_width * sizeof(float));
    }
    self->raw_logits = carve_take(block, vocab, sizeof(float));
    self->candidates = carve_take(block, vocab, sizeof *self->candidates);
    self->top = carve_take(block, ENGINE_MAX_LOGPROBS, sizeof *self->top);
    self->text = carve_take(block, self->text_bytes, 1);
}

/* Room for the longest token behind all that may be held back: see answer_text.h. */
static size_t text_room(const tokenizer *words)
{
    answer_text text = {.words = words, .num_held = ENGINE_MAX_STOP_BYTES};
    size_t most = 0;
    for (int32_t id = 0; words && id < tokenizer_vocab_size(words); id++) {
        size_t room = answer_text_room(&text, id);
        most = room > most ? room : most;
    }
    return most;
}

static mla_status take_arena(engine *self, mla_error *err)
{
    carve count = {0};
    self->text_bytes = text_room(self->options.words);
    lay_out(self, &count);
    MLAI_CHECK(!count.is_overflown, MLA_ERR_ARGUMENT,
               "the state of %d requests does not fit an address space",
               self->limits.max_requests);
    MLAI_TRY(mlai_ledger_take(self->ledger, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS,
                              count.used_bytes, CARVE_ALIGN_BYTES, "the engine's arrays",
                              &self->arena, err));
    self->arena_bytes = count.used_bytes;
    carve deal = {.base = self->arena};
    lay_out(self, &deal);
    pages_begin(&self->pages);
    return MLA_OK;
}

static mla_status begin(engine *self, mla_error *err)
{
    self->inbox_end = &self->inbox;
    (void)pthread_mutex_init(&self->lock, NULL);
    (void)pthread_cond_init(&self->news, NULL);
    MLAI_CHECK(getrandom(&self->secret, sizeof self->secret, 0) ==
                   (ssize_t)sizeof self->secret,
               MLA_ERR_INTERNAL, "the system gives no random bytes");
    MLAI_TRY(set_limits(self, err));
    MLAI_TRY(take_arena(self, err));
    return prepare_model(self, err);
}

mla_status engine_open(model *target, const engine_options *options, engine **out,
                       mla_error *err)
{
    mlai_ledger *ledger = mlai_context_ledger(model_context_of(target));
    void *block = NULL;
    MLAI_TRY(check_options(target, options, err));
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, 1, sizeof(engine),
                                     "an engine", &block, err));
    engine *made = block;
    made->model = target;
    made->ledger = ledger;
    made->pool = mlai_context_pool(model_context_of(target));
    made->options = *options;
    mla_status status = begin(made, err);
    if (status != MLA_OK) {
        engine_close(&made);
        return status;
    }
    engine_show(made);
    *out = made;
    return MLA_OK;
}

void engine_close(engine **engine_in)
{
    engine *self = *engine_in;
    if (!self) {
        return;
    }
    mlai_ledger *ledger = self->ledger;
    (void)pthread_cond_destroy(&self->news);
    (void)pthread_mutex_destroy(&self->lock);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS, self->arena_bytes,
                     self->arena);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *self, self);
    *engine_in = NULL;
}

const engine_limits *engine_limits_of(const engine *self)
{
    return &self->limits;
}

mla_context *engine_context_of(const engine *self)
{
    return model_context_of(self->model);
}

const tokenizer *engine_tokenizer_of(const engine *self)
{
    return self->options.words;
}

const chat_template *engine_chat_of(const engine *self)
{
    return self->options.chat;
}
