/* decode.c - the new rows of each sequence, in the absorbed form: W_UK goes into the query and W_UV
 * onto the output, so attention reads the cached rows as they are. */
#include <string.h>

#include "base/size.h"
#include "model/rope.h"
#include "model/state.h"

static int32_t rows_of(const model_step *step, int32_t sequence)
{
    return step->num_rows ? step->num_rows[sequence] : 1;
}

static mla_status check_sequence(const model *self, const model_step *step, int32_t i,
                                 mla_error *err)
{
    int64_t context = self->limits.max_context_tokens;
    int64_t first = step->positions[i];
    int32_t num = rows_of(step, i);
    MLAI_CHECK(num >= 1 && num <= self->limits.max_step_rows, MLA_ERR_ARGUMENT,
               "sequence %d has %d rows; 1 to %d", i, num, self->limits.max_step_rows);
    MLAI_CHECK(first >= 0 && first <= context - num, MLA_ERR_ARGUMENT,
               "positions %lld to %lld of sequence %d are outside %lld", (long long)first,
               (long long)first + num - 1, i, (long long)context);
    return layer_check_pages(self, step->block_tables[i],
                             (first + num - 1) / MODEL_PAGE_TOKENS + 1, err);
}

/* *num_rows: of all sequences. */
static mla_status check_step(const model *self, const model_step *step, int32_t *num_rows,
                             mla_error *err)
{
    int32_t num = 0;
    MLAI_CHECK(self->is_prepared, MLA_ERR_STATE, "the model is not prepared");
    MLAI_CHECK(step->num_sequences >= 1 &&
                   step->num_sequences <= self->limits.max_sequences,
               MLA_ERR_ARGUMENT, "%d sequences; 1 to %d", step->num_sequences,
               self->limits.max_sequences);
    for (int32_t i = 0; i < step->num_sequences; i++) {
        MLAI_TRY(check_sequence(self, step, i, err));
        num += rows_of(step, i);
    }
    MLAI_TRY(model_check_tokens(self, step->tokens, num, err));
    *num_rows = num;
    return MLA_OK;
}

/* Angles and cache slots of a sequence's rows, which begin at act's row `at`. */
static void place_rows(model *self, const model_step *step, int32_t sequence, int32_t at)
{
    activations *act = &self->act;
    int32_t rope_dim = self->config.qk_rope_head_dim;
    const int32_t *table = step->block_tables[sequence];
    for (int32_t i = 0; i < rows_of(step, sequence); i++) {
        int64_t position = step->positions[sequence] + i;
        rope_angles(act->inv_freq, rope_dim, self->rope_magnitude, position,
                    act->angles + (size_t)(at + i) * (size_t)rope_dim);
        act->slots[at + i] =
            (int64_t)table[position / MODEL_PAGE_TOKENS] * MODEL_PAGE_TOKENS +
            position % MODEL_PAGE_TOKENS;
    }
}

/* Rows, lengths and page tables of this step; returns the longest context. */
static int64_t place_sequences(model *self, const model_step *step)
{
    activations *act = &self->act;
    size_t table_width =
        (size_t)mlai_ceil_div(self->limits.max_context_tokens, MODEL_PAGE_TOKENS);
    int64_t longest = 0;
    act->query_starts[0] = 0;
    for (int32_t i = 0; i < step->num_sequences; i++) {
        int32_t at = act->query_starts[i];
        int64_t length = step->positions[i] + rows_of(step, i);
        size_t num_pages = (size_t)mlai_ceil_div(length, MODEL_PAGE_TOKENS);
        place_rows(self, step, i, at);
        memcpy(act->block_table + (size_t)i * table_width, step->block_tables[i],
               num_pages * sizeof *act->block_table);
        act->context_lens[i] = (int32_t)length;
        act->query_starts[i + 1] = at + rows_of(step, i);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static const unsigned char *kv_b_row(const matrix *kv_b, size_t row)
{
    return (const unsigned char *)kv_b->data +
           row * (size_t)kv_b->num_in * dtype_bytes(kv_b->dtype);
}

/* q_nope[h] W_UK[h] -> query[h][0..D); q_rope[h] is copied behind it. */
static void absorb_keys(const model_pass *pass, const matrix *kv_b)
{
    model *self = pass->model;
    const model_config *config = &self->config;
    activations *act = &self->act;
    size_t heads = (size_t)config->num_heads;
    size_t head_dim = (size_t)config_head_dim(config);
    size_t row_dim = (size_t)config_row_dim(config);
    size_t nope = (size_t)config->qk_nope_head_dim;
    size_t head_rows = nope + (size_t)config->v_head_dim;
    for (size_t h = 0; h < heads; h++) {
        act->jobs[h] = (gemm){.w = kv_b_row(kv_b, h * head_rows),
                              .w_stride = (size_t)kv_b->num_in,
                              .w_dtype = kv_b->dtype,
                              .num_out = kv_b->num_in,
                              .depth = config->qk_nope_head_dim,
                              .x = act->q + h * head_dim,
                              .x_stride = heads * head_dim,
                              .y = act->query + h * row_dim,
                              .y_stride = heads * row_dim,
                              .y_out_stride = 1,
                              .num_rows = pass->num_rows};
    }
    gemm_run(self->ops, self->threads, GEMM_NN, act->jobs, config->num_heads);
    for (size_t i = 0; i < (size_t)pass->num_rows * heads; i++) {
        memcpy(act->query + i * row_dim + (size_t)config->kv_lora_rank,
               act->q + i * head_dim + nope,
               (size_t)config->qk_rope_head_dim * sizeof(float));
    }
}

/* W_UV[h] latent_out[h] -> attended[h] */
static void absorb_values(const model_pass *pass, const matrix *kv_b)
{
    model *self = pass->model;
    const model_config *config = &self->config;
    activations *act = &self->act;
    size_t heads = (size_t)config->num_heads;
    size_t values = (size_t)config->v_head_dim;
    size_t nope = (size_t)config->qk_nope_head_dim;
    size_t latent = (size_t)kv_b->num_in;
    for (size_t h = 0; h < heads; h++) {
        act->jobs[h] = (gemm){.w = kv_b_row(kv_b, h * (nope + values) + nope),
                              .w_stride = latent,
                              .w_dtype = kv_b->dtype,
                              .num_out = config->v_head_dim,
                              .depth = kv_b->num_in,
                              .x = act->latent_out + h * latent,
                              .x_stride = heads * latent,
                              .y = act->attended + h * values,
                              .y_stride = heads * values,
                              .y_out_stride = 1,
                              .num_rows = pass->num_rows};
    }
    gemm_run(self->ops, self->threads, GEMM_NT, act->jobs, config->num_heads);
}

static mla_status decode_layers(const model_pass *pass, const mla_batch *batch,
                                float *features, mla_error *err)
{
    const model *self = pass->model;
    for (int32_t layer = 0; layer < self->config.num_layers; layer++) {
        const matrix *kv_b = &self->weights.layers[layer].kv_b;
        MLAI_TRY(layer_project(pass, layer, err));
        absorb_keys(pass, kv_b);
        MLAI_TRY(mla_run(self->layers[layer].binding, batch, (mla_stream){NULL}, err));
        absorb_values(pass, kv_b);
        layer_finish(pass, layer);
        layer_keep_features(pass, layer, features);
    }
    return MLA_OK;
}

mla_status model_decode(model *self, const model_step *step, mla_error *err)
{
    int32_t num_rows = 0;
    mlai_loan loan; /* of the workspace: a step inside of another is refused */
    MLAI_TRY(check_step(self, step, &num_rows, err));
    MLAI_TRY(mlai_lane_borrow(&self->lane, self->needs.workspace.bytes, &loan, err));
    model_pass pass = {self, num_rows};
    mla_batch batch = MLA_INIT(mla_batch);
    batch.num_requests = step->num_sequences;
    batch.num_query_rows = num_rows;
    batch.max_context_tokens = place_sequences(self, step);
    layer_embed(&pass, step->tokens);
    layer_keep_features(&pass, -1, step->features);
    mla_status status = decode_layers(&pass, &batch, step->features, err);
    if (status == MLA_OK) {
        layer_logits(&pass, 0, num_rows, step->logits);
    }
    mla_status returned = mlai_lane_give_back(&self->lane, &loan, NULL);
    return status == MLA_OK ? returned : status;
}
