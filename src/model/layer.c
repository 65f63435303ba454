/* layer.c - the parts of a decoder layer that decode and prefill share. Everything here is
 * done row by row or by gemm_run, so a row does not depend on its neighbours. */
#include <string.h>

#include "model/cpu/load.h"
#include "model/rope.h"
#include "model/state.h"

static void norm_rows(const model_pass *pass, const float *x, size_t stride,
                      const vector *weight, float eps, float *y)
{
    size_t y_stride = (size_t)weight->num;
    for (int32_t row = 0; row < pass->num_rows; row++) {
        pass->model->ops->rms_norm(x + (size_t)row * stride, weight, eps,
                                   y + (size_t)row * y_stride);
    }
}

static void add_bias(const model_pass *pass, const vector *bias, float *y)
{
    for (int32_t row = 0; bias->data && row < pass->num_rows; row++) {
        float *out = y + (size_t)row * (size_t)bias->num;
        for (int32_t i = 0; i < bias->num; i++) {
            out[i] += load_weight(bias->data, bias->dtype, (size_t)i);
        }
    }
}

mla_status model_check_tokens(const model *self, const int32_t *tokens, int32_t num,
                              mla_error *err)
{
    for (int32_t i = 0; i < num; i++) {
        MLAI_CHECK(tokens[i] >= 0 && tokens[i] < self->config.vocab_size, MLA_ERR_ARGUMENT,
                   "token %d at %d is outside the vocabulary of %d", tokens[i], i,
                   self->config.vocab_size);
    }
    return MLA_OK;
}

mla_status layer_check_pages(const model *self, const int32_t *table, int64_t num,
                             mla_error *err)
{
    for (int64_t i = 0; i < num; i++) {
        MLAI_CHECK(table[i] >= 0 && table[i] < self->limits.num_pages, MLA_ERR_ARGUMENT,
                   "page %d at %lld of the block table; there are %lld", table[i],
                   (long long)i, (long long)self->limits.num_pages);
    }
    return MLA_OK;
}

void layer_embed(const model_pass *pass, const int32_t *tokens)
{
    const matrix *table = &pass->model->weights.embedding;
    size_t width = (size_t)table->num_in;
    for (int32_t row = 0; row < pass->num_rows; row++) {
        float *out = pass->model->act.hidden + (size_t)row * width;
        for (size_t i = 0; i < width; i++) {
            out[i] =
                load_weight(table->data, table->dtype, (size_t)tokens[row] * width + i);
        }
    }
}

void layer_keep_features(const model_pass *pass, int32_t layer, float *features)
{
    const model_limits *limits = &pass->model->limits;
    size_t width = (size_t)pass->model->config.hidden_size;
    size_t num = (size_t)limits->num_feature_layers;
    for (size_t i = 0; features && i < num; i++) {
        for (size_t row = 0;
             limits->feature_layers[i] == layer && row < (size_t)pass->num_rows; row++) {
            memcpy(features + (row * num + i) * width,
                   pass->model->act.hidden + row * width, width * sizeof *features);
        }
    }
}

/* normed -> q [M][H][P+R] and latent [M][D+R], neither normed nor rotated yet. */
static void project(const model_pass *pass, const layer_weights *weights)
{
    model *self = pass->model;
    activations *act = &self->act;
    int32_t num = pass->num_rows;
    gemm jobs[2] = {gemm_of_matrix(&weights->kv_a, act->normed, num, act->latent)};
    if (!weights->q_a.data) {
        jobs[1] = gemm_of_matrix(&weights->q, act->normed, num, act->q);
        pass_multiply(pass, jobs, 2);
    } else {
        jobs[1] = gemm_of_matrix(&weights->q_a, act->normed, num, act->q_a);
        pass_multiply(pass, jobs, 2);
        add_bias(pass, &weights->q_a_bias, act->q_a);
        norm_rows(pass, act->q_a, (size_t)weights->q_a.num_out, &weights->q_a_norm,
                  self->config.latent_norm_eps, act->q_a);
        jobs[1] = gemm_of_matrix(&weights->q_b, act->q_a, num, act->q);
        pass_multiply(pass, jobs + 1, 1);
    }
    add_bias(pass, &weights->kv_a_bias, act->latent);
}

/* The latent part of each row is normed, and every rope part rotated. */
static void finish_row(const model_pass *pass, const layer_weights *weights, int32_t row)
{
    const model_config *config = &pass->model->config;
    const activations *act = &pass->model->act;
    int32_t rope_dim = config->qk_rope_head_dim;
    size_t head_dim = (size_t)config_head_dim(config);
    size_t row_dim = (size_t)config_row_dim(config);
    float *latent = act->latent + (size_t)row * row_dim;
    float *q = act->q + (size_t)row * (size_t)config->num_heads * head_dim;
    const float *angles = act->angles + (size_t)row * (size_t)rope_dim;
    bool is_interleaved = config->rope.is_interleaved;
    pass->model->ops->rms_norm(latent, &weights->kv_a_norm, config->latent_norm_eps,
                               latent);
    rope_rotate(angles, rope_dim, is_interleaved, latent + config->kv_lora_rank);
    for (int32_t head = 0; head < config->num_heads; head++) {
        rope_rotate(angles, rope_dim, is_interleaved,
                    q + (size_t)head * head_dim + config->qk_nope_head_dim);
    }
}

static mla_status append(const model_pass *pass, int32_t layer, mla_error *err)
{
    model *self = pass->model;
    size_t row_bytes = (size_t)config_row_dim(&self->config) * sizeof(float);
    size_t num = (size_t)pass->num_rows;
    mla_append_args args = MLA_INIT(mla_append_args);
    args.rows = (mla_in){self->act.latent, num * row_bytes};
    args.slots = (mla_in){self->act.slots, num * sizeof(int64_t)};
    if (self->limits.kv_format == MLA_KV_FP8) {
        args.kv_scale = (mla_in){self->act.kv_scale, sizeof(float)};
    }
    args.kv_pool = (mla_out){self->layers[layer].pool, self->needs.kv_pool.bytes};
    args.num_rows = pass->num_rows;
    args.rows_dtype = MLA_F32;
    return mla_append(self->plan, &args, (mla_stream){NULL}, err);
}

mla_status layer_project(const model_pass *pass, int32_t layer, mla_error *err)
{
    model *self = pass->model;
    const layer_weights *weights = &self->weights.layers[layer];
    norm_rows(pass, self->act.hidden, (size_t)self->config.hidden_size,
              &weights->input_norm, self->config.rms_norm_eps, self->act.normed);
    project(pass, weights);
    for (int32_t row = 0; row < pass->num_rows; row++) {
        finish_row(pass, weights, row);
    }
    return append(pass, layer, err);
}

void layer_finish(const model_pass *pass, int32_t layer)
{
    model *self = pass->model;
    const layer_weights *weights = &self->weights.layers[layer];
    gemm out =
        gemm_of_matrix(&weights->o, self->act.attended, pass->num_rows, self->act.hidden);
    out.is_added = true;
    pass_multiply(pass, &out, 1);
    add_bias(pass, &weights->o_bias, self->act.hidden);
    norm_rows(pass, self->act.hidden, (size_t)self->config.hidden_size,
              &weights->post_attention_norm, self->config.rms_norm_eps, self->act.normed);
    if (model_config_is_moe_layer(&self->config, layer)) {
        experts_run(pass, weights);
    } else {
        mlp_run(pass, &weights->mlp);
    }
}

void layer_logits(const model_pass *pass, int32_t first, int32_t num, float *logits)
{
    model *self = pass->model;
    size_t width = (size_t)self->config.hidden_size;
    model_pass part = {self, num};
    norm_rows(&part, self->act.hidden + (size_t)first * width, width, &self->weights.norm,
              self->config.rms_norm_eps, self->act.normed);
    gemm head = gemm_of_matrix(&self->weights.lm_head, self->act.normed, num, logits);
    pass_multiply(&part, &head, 1);
}
