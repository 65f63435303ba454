/* activations.c - the order of the arrays that a forward pass writes: see activations.h. */
#include "model/activations.h"

#include "model/router.h"

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t max_mlp_width(const model_config *config)
{
    size_t shared =
        (size_t)config->moe_intermediate_size * (size_t)config->num_shared_experts;
    return max_size((size_t)config->intermediate_size, shared);
}

static void lay_out_experts(const model_config *config, const activation_limits *limits,
                            carve *block, activations *act)
{
    size_t rows = (size_t)limits->max_rows;
    size_t experts = (size_t)config->num_experts;
    size_t pairs = rows * (size_t)config->experts_per_token;
    size_t width = (size_t)config->moe_intermediate_size;
    if (experts > 0) {
        act->router_logits = carve_take(block, rows * experts, sizeof(float));
        act->router_scratch =
            carve_take(block, router_scratch_floats(config), sizeof(float));
        act->chosen = carve_take(block, pairs, sizeof(int32_t));
        act->chosen_weights = carve_take(block, pairs, sizeof(float));
        act->expert_start = carve_take(block, experts + 1, sizeof(int32_t));
        act->pair_token = carve_take(block, pairs, sizeof(int32_t));
        act->pair_index = carve_take(block, pairs, sizeof(int32_t));
        act->expert_gate = carve_take(block, pairs, width * sizeof(float));
        act->expert_up = carve_take(block, pairs, width * sizeof(float));
        act->expert_out =
            carve_take(block, pairs, (size_t)config->hidden_size * sizeof(float));
    }
    act->jobs =
        carve_take(block, max_size((size_t)config->num_heads, 2 * experts), sizeof(gemm));
}

static void lay_out_rows(const model_config *config, const activation_limits *limits,
                         carve *block, activations *act)
{
    size_t rows = (size_t)limits->max_rows;
    size_t heads = (size_t)config->num_heads;
    size_t half = (size_t)config->qk_rope_head_dim / 2;
    size_t hidden_bytes = (size_t)config->hidden_size * sizeof(float);
    size_t head_dim = (size_t)config_head_dim(config);
    act->inv_freq = carve_take(block, half, sizeof(double));
    act->angles = carve_take(block, rows, 2 * half * sizeof(float));
    act->slots = carve_take(block, rows, sizeof(int64_t));
    act->hidden = carve_take(block, rows, hidden_bytes);
    act->normed = carve_take(block, rows, hidden_bytes);
    act->q_a = carve_take(block, rows, (size_t)config->q_lora_rank * sizeof(float));
    act->q = carve_take(block, rows, heads * head_dim * sizeof(float));
    act->latent = carve_take(block, rows, (size_t)config_row_dim(config) * sizeof(float));
    act->attended =
        carve_take(block, rows, heads * (size_t)config->v_head_dim * sizeof(float));
    act->gate = carve_take(block, rows, max_mlp_width(config) * sizeof(float));
    act->up = carve_take(block, rows, max_mlp_width(config) * sizeof(float));
}

static void lay_out_absorbed(const activation_limits *limits, carve *block,
                             activations *act)
{
    const mla_requirements *needs = limits->needs;
    act->query = carve_take(block, needs->query.bytes, 1);
    act->latent_out = carve_take(block, needs->output.bytes, 1);
    act->lse = carve_take(block, needs->lse.bytes, 1);
    act->block_table = carve_take(block, needs->block_table.bytes, 1);
    act->context_lens = carve_take(block, needs->context_lens.bytes, 1);
    act->query_starts = carve_take(block, needs->query_starts.bytes, 1);
    act->kv_scale = carve_take(block, 1, sizeof(float));
}

static void lay_out_unabsorbed(const model_config *config, const activation_limits *limits,
                               carve *block, activations *act)
{
    size_t cell_bytes = MODEL_CHUNK_TOKENS * sizeof(float);
    size_t heads = (size_t)config->num_heads;
    size_t rows = (size_t)limits->max_rows;
    size_t threads = (size_t)limits->num_threads;
    size_t key_dims = (size_t)config->qk_nope_head_dim + (size_t)config->v_head_dim;
    act->rows = carve_take(block, (size_t)config_row_dim(config), cell_bytes);
    act->rope_keys = carve_take(block, (size_t)config->qk_rope_head_dim, cell_bytes);
    act->keys = carve_take(block, heads * key_dims, cell_bytes);
    act->scores = carve_take(block, threads * ATTEND_ROWS, cell_bytes);
    act->row_max = carve_take(block, rows, heads * sizeof(float));
    act->row_weight = carve_take(block, rows, heads * sizeof(float));
}

void activations_lay_out(const model_config *config, const activation_limits *limits,
                         carve *block, activations *act)
{
    lay_out_rows(config, limits, block, act);
    lay_out_experts(config, limits, block, act);
    lay_out_absorbed(limits, block, act);
    lay_out_unabsorbed(config, limits, block, act);
}
