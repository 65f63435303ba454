/* model_count.c - operations and bytes by counting: see model_count.h. */
#include "cli/model_count.h"

enum { WEIGHT_BYTES = 2 /* bf16 */, FLOPS_PER_WEIGHT = 2 };

/* Matrix elements of one layer's attention, kv_b apart. */
static double projections(const model_config *config)
{
    double d = config->hidden_size;
    double heads = config->num_heads;
    double head_dim = config->qk_nope_head_dim + config->qk_rope_head_dim;
    double rank = config->q_lora_rank;
    double query = rank > 0 ? d * rank + rank * heads * head_dim : d * heads * head_dim;
    return query + d * (config->kv_lora_rank + config->qk_rope_head_dim) +
           heads * config->v_head_dim * d;
}

static double kv_b(const model_config *config)
{
    return (double)config->num_heads * (config->qk_nope_head_dim + config->v_head_dim) *
           config->kv_lora_rank;
}

/* Matrix elements of one layer's feed-forward part where num_experts of the routed are used. */
static double feed_forward(const model_config *config, int32_t layer, double num_experts)
{
    double d = config->hidden_size;
    if (!model_config_is_moe_layer(config, layer)) {
        return 3 * d * config->intermediate_size;
    }
    return d * config->num_experts + 3 * d * config->moe_intermediate_size *
                                         (num_experts + config->num_shared_experts);
}

static double layers(const model_config *config, double num_experts)
{
    double sum = 0;
    for (int32_t i = 0; i < config->num_layers; i++) {
        sum += projections(config) + kv_b(config) + feed_forward(config, i, num_experts);
    }
    return sum;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static double touched_bytes(const model_config *config, double num_tokens)
{
    double experts = least(config->num_experts, num_tokens * config->experts_per_token);
    double head = (double)config->vocab_size * config->hidden_size;
    return WEIGHT_BYTES * (layers(config, experts) + head);
}

model_count model_count_prefill(const model_config *config, int64_t num_tokens,
                                double row_bytes)
{
    double tokens = (double)num_tokens;
    double pairs = tokens * (tokens + 1) / 2;
    double widths =
        config->qk_nope_head_dim + config->qk_rope_head_dim + config->v_head_dim;
    double attention = pairs * config->num_heads * widths * config->num_layers;
    double head = (double)config->vocab_size * config->hidden_size;
    double weights = tokens * layers(config, config->experts_per_token) + head;
    return (model_count){
        .flops = FLOPS_PER_WEIGHT * (weights + attention),
        .bytes = touched_bytes(config, tokens) + tokens * row_bytes * config->num_layers,
    };
}

model_count model_count_decode(const model_config *config, int32_t num_sequences,
                               int64_t context, double row_bytes)
{
    double sequences = num_sequences;
    double pairs = sequences * (double)context;
    double widths = 2.0 * config->kv_lora_rank + config->qk_rope_head_dim;
    double attention = pairs * config->num_heads * widths * config->num_layers;
    double head = (double)config->vocab_size * config->hidden_size;
    double weights = sequences * (layers(config, config->experts_per_token) + head);
    return (model_count){
        .flops = FLOPS_PER_WEIGHT * (weights + attention),
        .bytes = touched_bytes(config, sequences) + pairs * row_bytes * config->num_layers,
    };
}
