/* layer.c - the parts of a decoder layer that decode and prefill share. Everything here is
 * done row by row or by gemm_run, so a row does not depend on its neighbours. */
#include "model/cpu/load.h"
#include "model/rope.h"
#include "model/state.h"

static void norm_rows(const pass *pass, const float *x, size_t stride, const vector *weight,
                      float eps, float *y)
{
    size_t y_stride = (size_t)weight->num;
    for (int32_t row = 0; row < pass->num_rows; row++) {
        pass->model->ops->rms_norm(x + (size_t)row * stride, weight, eps,
                                   y + (size_t)row * y_stride);
    }
}

static void add_bias(const pass *pass, const vector *bias, float *y)
{
    for (int32_t row = 0; bias->data && row < pass->num_rows; row++) {
        float *out = y + (size_t)row * (size_t)bias->num;
        for (int32_t i = 0; i < bias->num; i++) {
            out[i] += load_weight(bias->data, bias->dtype, (size_t)i);
        }
    }
}

static void run_nt(const pass *pass, gemm *jobs, int32_t num)
{
    gemm_run(pass->model->ops, pass->model->threads, GEMM_NT, jobs, num);
}

mla_status layer_check_tokens(const model *model, const int32_t *tokens, int32_t num,
                              mla_error *err)
{
    for (int32_t i = 0; i < num; i++) {
        MLAI_CHECK(tokens[i] >= 0 && tokens[i] < model->config.vocab_size, MLA_ERR_ARGUMENT,
                   "token %d at %d is outside the vocabulary of %d", tokens[i], i,
                   model->config.vocab_size);
    }
    return MLA_OK;
}

void layer_embed(const pass *pass, const int32_t *tokens)
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

/* normed -> q [M][H][P+R] and latent [M][D+R], neither normed nor rotated yet. */
static void project(const pass *pass, const layer_weights *weights)
{
    model *model = pass->model;
    activations *act = &model->act;
    int32_t num = pass->num_rows;
    gemm jobs[2] = {gemm_of_matrix(&weights->kv_a, act->normed, num, act->latent)};
    if (!weights->q_a.data) {
        jobs[1] = gemm_of_matrix(&weights->q, act->normed, num, act->q);
        run_nt(pass, jobs, 2);
    } else {
        jobs[1] = gemm_of_matrix(&weights->q_a, act->normed, num, act->q_a);
        run_nt(pass, jobs, 2);
        add_bias(pass, &weights->q_a_bias, act->q_a);
        norm_rows(pass, act->q_a, (size_t)weights->q_a.num_out, &weights->q_a_norm,
                  model->config.latent_norm_eps, act->q_a);
        jobs[1] = gemm_of_matrix(&weights->q_b, act->q_a, num, act->q);
        run_nt(pass, jobs + 1, 1);
    }
    add_bias(pass, &weights->kv_a_bias, act->latent);
}

/* The latent part of each row is normed, and every rope part rotated. */
static void finish_row(const pass *pass, const layer_weights *weights, int32_t row)
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

static mla_status append(const pass *pass, int32_t layer, mla_error *err)
{
    model *model = pass->model;
    size_t row_bytes = (size_t)config_row_dim(&model->config) * sizeof(float);
    size_t num = (size_t)pass->num_rows;
    mla_append_args args = MLA_INIT(mla_append_args);
    args.rows = (mla_in){model->act.latent, num * row_bytes};
    args.slots = (mla_in){model->act.slots, num * sizeof(int64_t)};
    if (model->limits.kv_format == MLA_KV_FP8) {
        args.kv_scale = (mla_in){model->act.kv_scale, sizeof(float)};
    }
    args.kv_pool = (mla_out){model->layers[layer].pool, model->needs.kv_pool.bytes};
    args.num_rows = pass->num_rows;
    args.rows_dtype = MLA_F32;
    return mla_append(model->plan, &args, (mla_stream){NULL}, err);
}

mla_status layer_project(const pass *pass, int32_t layer, mla_error *err)
{
    model *model = pass->model;
    const layer_weights *weights = &model->weights.layers[layer];
    norm_rows(pass, model->act.hidden, (size_t)model->config.hidden_size,
              &weights->input_norm, model->config.rms_norm_eps, model->act.normed);
    project(pass, weights);
    for (int32_t row = 0; row < pass->num_rows; row++) {
        finish_row(pass, weights, row);
    }
    return append(pass, layer, err);
}

void layer_finish(const pass *pass, int32_t layer)
{
    model *model = pass->model;
    const layer_weights *weights = &model->weights.layers[layer];
    gemm out =
        gemm_of_matrix(&weights->o, model->act.attended, pass->num_rows, model->act.hidden);
    out.is_added = true;
    run_nt(pass, &out, 1);
    add_bias(pass, &weights->o_bias, model->act.hidden);
    norm_rows(pass, model->act.hidden, (size_t)model->config.hidden_size,
              &weights->post_attention_norm, model->config.rms_norm_eps, model->act.normed);
    if (model_config_is_moe_layer(&model->config, layer)) {
        experts_run(pass, weights);
    } else {
        mlp_run(pass, &weights->mlp);
    }
}

void layer_logits(const pass *pass, int32_t first, int32_t num, float *logits)
{
    model *model = pass->model;
    size_t width = (size_t)model->config.hidden_size;
    struct pass part = {model, num};
    norm_rows(&part, model->act.hidden + (size_t)first * width, width, &model->weights.norm,
              model->config.rms_norm_eps, model->act.normed);
    gemm head = gemm_of_matrix(&model->weights.lm_head, model->act.normed, num, logits);
    run_nt(&part, &head, 1);
}
