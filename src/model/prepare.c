/* prepare.c - the attention plan, then all memory that a forward pass will use. */
#include "base/size.h"
#include "model/activations.h"
#include "model/rope.h"
#include "model/state.h"

static mla_status check_limits(const model *self, const model_limits *limits,
                               mla_error *err)
{
    MLAI_CHECK(!self->is_prepared, MLA_ERR_STATE, "the model is prepared already");
    MLAI_CHECK(limits->max_sequences >= 1, MLA_ERR_ARGUMENT,
               "max_sequences is %d; at least 1", limits->max_sequences);
    MLAI_CHECK(limits->max_context_tokens >= 1 &&
                   limits->max_context_tokens <= self->config.max_positions &&
                   limits->max_context_tokens <= INT32_MAX,
               MLA_ERR_ARGUMENT, "max_context_tokens is %lld; 1 to %lld for this model",
               (long long)limits->max_context_tokens,
               (long long)self->config.max_positions);
    MLAI_CHECK(limits->num_pages >= 1, MLA_ERR_ARGUMENT, "num_pages is %lld; at least 1",
               (long long)limits->num_pages);
    MLAI_CHECK(limits->max_step_rows >= 0 && limits->max_step_rows <= MODEL_MAX_STEP_ROWS &&
                   limits->max_sequences <= INT32_MAX / MODEL_MAX_STEP_ROWS,
               MLA_ERR_ARGUMENT, "%d sequences of %d rows; a sequence has %d at most",
               limits->max_sequences, limits->max_step_rows, MODEL_MAX_STEP_ROWS);
    for (int32_t i = 0; i < limits->num_feature_layers; i++) {
        int32_t layer = limits->feature_layers[i];
        int32_t before = i > 0 ? limits->feature_layers[i - 1] : -2;
        MLAI_CHECK(
            layer > before && layer < self->config.num_layers - 1, MLA_ERR_ARGUMENT,
            "feature layer %d after %d; they rise from -1 and end before the last, %d",
            layer, before, self->config.num_layers - 1);
    }
    return MLA_OK;
}

static int32_t rows_of_a_pass(const model_limits *limits)
{
    int32_t rows = limits->max_sequences * limits->max_step_rows;
    return rows > MODEL_CHUNK_TOKENS ? rows : MODEL_CHUNK_TOKENS;
}

static mla_caps decode_caps(const model *self)
{
    const model_config *config = &self->config;
    const model_limits *limits = &self->limits;
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = limits->max_step_rows > 1 ? MLA_VERIFY : MLA_DECODE;
    caps.kv_format = limits->kv_format;
    caps.query_dtype = MLA_F32;
    caps.output_dtype = MLA_F32;
    caps.num_heads = config->num_heads;
    caps.latent_dim = config->kv_lora_rank;
    caps.rope_dim = config->qk_rope_head_dim;
    caps.page_tokens = MODEL_PAGE_TOKENS;
    caps.causal = 1;
    caps.softmax_scale = config->softmax_scale;
    caps.max_requests = limits->max_sequences;
    caps.max_query_rows = limits->max_sequences * limits->max_step_rows;
    caps.max_rows_per_request = limits->max_step_rows;
    caps.table_width =
        (int32_t)mlai_ceil_div(limits->max_context_tokens, MODEL_PAGE_TOKENS);
    caps.max_context_tokens = limits->max_context_tokens;
    caps.num_pages = limits->num_pages;
    return caps;
}

/* The plan's share as the session says it, and a pool for each layer. */
static mla_status estimate_bytes(const model *self, const mla_session *session,
                                 mla_memory_report *out, mla_error *err)
{
    const model_config *config = &self->config;
    uint64_t row_bytes = mla_kv_row_bytes(self->limits.kv_format, config->kv_lora_rank,
                                          config->qk_rope_head_dim);
    MLAI_TRY(mla_session_estimate(session, out, err));
    mla_memory_cell *kv = &out->cell[MLA_SPACE_HOST][MLA_FOR_KV];
    kv->now_bytes = (uint64_t)config->num_layers * (uint64_t)self->limits.num_pages *
                    MODEL_PAGE_TOKENS * row_bytes;
    kv->peak_bytes = kv->now_bytes;
    return MLA_OK;
}

static mla_status make_plan(model *self, mla_error *err)
{
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_caps caps = decode_caps(self);
    mla_session *session = NULL;
    mla_ticket ticket = 0;
    mla_status status = MLA_OK;
    options.progress = self->limits.progress;
    options.progress_user = self->limits.progress_user;
    MLAI_TRY(mla_session_open(self->context, &options, &session, err));
    MLAI_TRY_OR(done, mla_session_add(session, &caps, NULL, &ticket, err));
    if (self->limits.estimate) {
        MLAI_TRY_OR(done, estimate_bytes(self, session, self->limits.estimate, err));
    }
    MLAI_TRY_OR(done, mla_session_prepare(session, err));
    MLAI_TRY_OR(done, mla_session_publish(session, ticket, &self->plan, err));
done:
    mla_session_close(&session);
    return status;
}

static void lay_out(const model *self, carve *block, activations *act)
{
    const activation_limits limits = {.max_rows = self->max_rows,
                                      .num_threads = mlai_pool_num_threads(self->threads),
                                      .needs = &self->needs};
    activations_lay_out(&self->config, &limits, block, act);
}

static mla_status take_activations(model *self, mla_error *err)
{
    carve count = {0};
    activations *act = &self->act;
    lay_out(self, &count, act);
    MLAI_CHECK(!count.is_overflown, MLA_ERR_ARGUMENT,
               "the activations of %d rows do not fit an address space", self->max_rows);
    MLAI_TRY(mlai_ledger_take(mlai_context_ledger(self->context), MLA_SPACE_HOST,
                              MLA_FOR_ACTIVATIONS, count.used_bytes, CARVE_ALIGN_BYTES,
                              "the activations", &self->arena, err));
    self->arena_bytes = count.used_bytes;
    carve deal = {.base = self->arena};
    lay_out(self, &deal, act);
    rope_frequencies(&self->config.rope, self->config.qk_rope_head_dim, act->inv_freq);
    self->rope_magnitude = rope_magnitude(&self->config.rope);
    act->kv_scale[0] = 1.0F;
    return MLA_OK;
}

static mla_status bind_layer(model *self, layer_cache *layer, mla_error *err)
{
    const mla_requirements *needs = &self->needs;
    const activations *act = &self->act;
    mla_buffers buffers = MLA_INIT(mla_buffers);
    buffers.kv_pool = (mla_in){layer->pool, needs->kv_pool.bytes};
    buffers.query = (mla_in){act->query, needs->query.bytes};
    buffers.block_table = (mla_in){act->block_table, needs->block_table.bytes};
    buffers.context_lens = (mla_in){act->context_lens, needs->context_lens.bytes};
    buffers.query_starts = (mla_in){act->query_starts, needs->query_starts.bytes};
    if (self->limits.kv_format == MLA_KV_FP8) {
        buffers.kv_scale = (mla_in){act->kv_scale, sizeof(float)};
    }
    buffers.output = (mla_out){act->latent_out, needs->output.bytes};
    buffers.lse = (mla_out){act->lse, needs->lse.bytes};
    buffers.workspace = (mla_out){self->lane.data, needs->workspace.bytes};
    return mla_bind(self->plan, &buffers, &layer->binding, err);
}

/* As large as the plan asks for, and where bindings have it from here on. */
static mla_status take_lane(model *self, mla_error *err)
{
    self->lane = mlai_lane_open(self->context, MLA_FOR_ACTIVATIONS);
    MLAI_TRY(mlai_lane_reserve(&self->lane, self->needs.workspace.bytes, err));
    mlai_lane_fix(&self->lane);
    return MLA_OK;
}

static mla_status take_caches(model *self, mla_error *err)
{
    mlai_ledger *ledger = mlai_context_ledger(self->context);
    const mla_need *need = &self->needs.kv_pool;
    void *layers = NULL;
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT,
                                     (size_t)self->config.num_layers, sizeof(layer_cache),
                                     "the table of layers", &layers, err));
    self->layers = layers;
    for (int32_t i = 0; i < self->config.num_layers; i++) {
        MLAI_TRY(mlai_ledger_take(ledger, need->space, MLA_FOR_KV, need->bytes,
                                  need->align_bytes, "a layer's KV pool",
                                  &self->layers[i].pool, err));
        MLAI_TRY(bind_layer(self, &self->layers[i], err));
    }
    return MLA_OK;
}

static mla_status read_needs(model *self, mla_error *err)
{
    const model_config *config = &self->config;
    self->needs = (mla_requirements)MLA_INIT(mla_requirements);
    MLAI_TRY(mla_plan_requirements(self->plan, &self->needs, err));
    const mla_need *carved[] = {&self->needs.query,        &self->needs.output,
                                &self->needs.lse,          &self->needs.block_table,
                                &self->needs.context_lens, &self->needs.query_starts};
    for (size_t i = 0; i < sizeof carved / sizeof(mla_need *); i++) {
        MLAI_CHECK(carved[i]->align_bytes <= CARVE_ALIGN_BYTES, MLA_ERR_INTERNAL,
                   "a buffer of the plan wants %u-byte alignment", carved[i]->align_bytes);
    }
    self->row_bytes = mla_kv_row_bytes(self->limits.kv_format, config->kv_lora_rank,
                                       config->qk_rope_head_dim);
    return MLA_OK;
}

mla_status model_prepare(model *self, const model_limits *limits, mla_error *err)
{
    mla_status status = MLA_OK;
    MLAI_TRY(check_limits(self, limits, err));
    self->limits = *limits;
    self->limits.max_step_rows = limits->max_step_rows ? limits->max_step_rows : 1;
    self->max_rows = rows_of_a_pass(&self->limits);
    MLAI_TRY_OR(fail, make_plan(self, err));
    MLAI_TRY_OR(fail, read_needs(self, err));
    MLAI_TRY_OR(fail, take_activations(self, err));
    MLAI_TRY_OR(fail, take_lane(self, err));
    MLAI_TRY_OR(fail, take_caches(self, err));
    self->is_prepared = true;
    return MLA_OK;
fail:
    model_unprepare(self);
    return status;
}

void model_unprepare(model *self)
{
    mlai_ledger *ledger = mlai_context_ledger(self->context);
    const mla_need *need = &self->needs.kv_pool;
    for (int32_t i = 0; self->layers && i < self->config.num_layers; i++) {
        mla_unbind(&self->layers[i].binding);
        mlai_ledger_give(ledger, need->space, MLA_FOR_KV, need->bytes,
                         self->layers[i].pool);
    }
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     (size_t)self->config.num_layers * sizeof *self->layers, self->layers);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS, self->arena_bytes,
                     self->arena);
    mlai_lane_close(&self->lane);
    mla_plan_release(&self->plan);
    self->layers = NULL;
    self->arena = NULL;
    self->is_prepared = false;
}
