/* family.c - the table of families. */
#include "model/family.h"

#include <stdio.h>
#include <string.h>

#include "model/weights.h"

static bool is_dense(const model_config *config, int32_t layer)
{
    return !model_config_is_moe_layer(config, layer);
}

static bool has_router_bias(const model_config *config, int32_t layer)
{
    return model_config_is_moe_layer(config, layer) && config->choice == ROUTER_NOAUX_TC;
}

static bool has_shared_experts(const model_config *config, int32_t layer)
{
    return model_config_is_moe_layer(config, layer) && config->num_shared_experts > 0;
}

static bool has_plain_query(const model_config *config, int32_t layer)
{
    (void)layer;
    return config->q_lora_rank == 0;
}

static bool has_query_rank(const model_config *config, int32_t layer)
{
    (void)layer;
    return config->q_lora_rank > 0;
}

static bool has_query_bias(const model_config *config, int32_t layer)
{
    (void)layer;
    return config->q_lora_rank > 0 && config->has_attention_bias;
}

static bool has_bias(const model_config *config, int32_t layer)
{
    (void)layer;
    return config->has_attention_bias;
}

static bool has_own_head(const model_config *config, int32_t layer)
{
    (void)layer;
    return !config->is_embedding_tied;
}

#define MODEL(name, when, out, in, field)                                                  \
    {                                                                                      \
        name, TENSOR_OF_MODEL, when, out, in, offsetof(model_weights, field)               \
    }
#define LAYER(name, when, out, in, field)                                                  \
    {                                                                                      \
        name, TENSOR_OF_LAYER, when, out, in, offsetof(layer_weights, field)               \
    }
#define EXPERT(name, out, in, field)                                                       \
    {                                                                                      \
        name, TENSOR_OF_EXPERT, model_config_is_moe_layer, out, in,                        \
            offsetof(mlp_weights, field)                                                   \
    }

/* clang-format off */
static const tensor_rule deepseek_v3_tensors[] = {
    MODEL("model.embed_tokens.weight", NULL, DIM_VOCAB, DIM_HIDDEN, embedding),
    MODEL("model.norm.weight", NULL, DIM_HIDDEN, DIM_NONE, norm),
    MODEL("lm_head.weight", has_own_head, DIM_VOCAB, DIM_HIDDEN, lm_head),
    LAYER("input_layernorm.weight", NULL, DIM_HIDDEN, DIM_NONE, input_norm),
    LAYER("self_attn.q_proj.weight", has_plain_query, DIM_QUERY, DIM_HIDDEN, q),
    LAYER("self_attn.q_a_proj.weight", has_query_rank, DIM_QUERY_RANK, DIM_HIDDEN, q_a),
    LAYER("self_attn.q_a_proj.bias", has_query_bias, DIM_QUERY_RANK, DIM_NONE, q_a_bias),
    LAYER("self_attn.q_a_layernorm.weight", has_query_rank, DIM_QUERY_RANK, DIM_NONE, q_a_norm),
    LAYER("self_attn.q_b_proj.weight", has_query_rank, DIM_QUERY, DIM_QUERY_RANK, q_b),
    LAYER("self_attn.kv_a_proj_with_mqa.weight", NULL, DIM_LATENT_ROPE, DIM_HIDDEN, kv_a),
    LAYER("self_attn.kv_a_proj_with_mqa.bias", has_bias, DIM_LATENT_ROPE, DIM_NONE, kv_a_bias),
    LAYER("self_attn.kv_a_layernorm.weight", NULL, DIM_LATENT, DIM_NONE, kv_a_norm),
    LAYER("self_attn.kv_b_proj.weight", NULL, DIM_KEY_VALUE, DIM_LATENT, kv_b),
    LAYER("self_attn.o_proj.weight", NULL, DIM_HIDDEN, DIM_VALUE, o),
    LAYER("self_attn.o_proj.bias", has_bias, DIM_HIDDEN, DIM_NONE, o_bias),
    LAYER("post_attention_layernorm.weight", NULL, DIM_HIDDEN, DIM_NONE, post_attention_norm),
    LAYER("mlp.gate_proj.weight", is_dense, DIM_MLP, DIM_HIDDEN, mlp.gate),
    LAYER("mlp.up_proj.weight", is_dense, DIM_MLP, DIM_HIDDEN, mlp.up),
    LAYER("mlp.down_proj.weight", is_dense, DIM_HIDDEN, DIM_MLP, mlp.down),
    LAYER("mlp.gate.weight", model_config_is_moe_layer, DIM_EXPERTS, DIM_HIDDEN, router),
    LAYER("mlp.gate.e_score_correction_bias", has_router_bias, DIM_EXPERTS, DIM_NONE, router_bias),
    EXPERT("gate_proj.weight", DIM_EXPERT_MLP, DIM_HIDDEN, gate),
    EXPERT("up_proj.weight", DIM_EXPERT_MLP, DIM_HIDDEN, up),
    EXPERT("down_proj.weight", DIM_HIDDEN, DIM_EXPERT_MLP, down),
    LAYER("mlp.shared_experts.gate_proj.weight", has_shared_experts, DIM_SHARED_MLP, DIM_HIDDEN, shared_experts.gate),
    LAYER("mlp.shared_experts.up_proj.weight", has_shared_experts, DIM_SHARED_MLP, DIM_HIDDEN, shared_experts.up),
    LAYER("mlp.shared_experts.down_proj.weight", has_shared_experts, DIM_HIDDEN, DIM_SHARED_MLP, shared_experts.down),
};
/* clang-format on */

static const model_family families[] = {
    {.model_types = {"deepseek_v3"},
     .layer_prefix = "model.layers.",
     .expert_prefix = "mlp.experts.",
     .tensors = deepseek_v3_tensors,
     .num_tensors = sizeof deepseek_v3_tensors / sizeof deepseek_v3_tensors[0],
     .score = ROUTER_SIGMOID,
     .choice = ROUTER_NOAUX_TC,
     .is_topk_normed = true,
     .is_rope_interleaved = true,
     /* The reference code builds the latent norms without the config's eps. */
     .latent_norm_eps = 1e-6},
};
enum {
    NUM_FAMILIES = sizeof families / sizeof families[0],
    NUM_TYPES = sizeof families[0].model_types / sizeof families[0].model_types[0],
};

const model_family *model_family_find(const char *model_type)
{
    for (int i = 0; i < NUM_FAMILIES; i++) {
        for (int j = 0; j < NUM_TYPES && families[i].model_types[j]; j++) {
            if (strcmp(families[i].model_types[j], model_type) == 0) {
                return &families[i];
            }
        }
    }
    return NULL;
}

const char *model_family_names(char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < NUM_FAMILIES; i++) {
        for (int j = 0; j < NUM_TYPES && families[i].model_types[j]; j++) {
            int more = snprintf(out + used, bytes - used, "%s%s", used > 0 ? ", " : "",
                                families[i].model_types[j]);
            used += more > 0 ? (size_t)more : 0;
            if (used >= bytes) {
                return out;
            }
        }
    }
    return out;
}

int32_t tensor_dim_of(const model_config *config, tensor_dim dim)
{
    const model_config *c = config;
    switch (dim) {
    case DIM_NONE:
        return 0;
    case DIM_VOCAB:
        return c->vocab_size;
    case DIM_HIDDEN:
        return c->hidden_size;
    case DIM_QUERY:
        return c->num_heads * (c->qk_nope_head_dim + c->qk_rope_head_dim);
    case DIM_QUERY_RANK:
        return c->q_lora_rank;
    case DIM_LATENT:
        return c->kv_lora_rank;
    case DIM_LATENT_ROPE:
        return c->kv_lora_rank + c->qk_rope_head_dim;
    case DIM_KEY_VALUE:
        return c->num_heads * (c->qk_nope_head_dim + c->v_head_dim);
    case DIM_VALUE:
        return c->num_heads * c->v_head_dim;
    case DIM_MLP:
        return c->intermediate_size;
    case DIM_EXPERTS:
        return c->num_experts;
    case DIM_EXPERT_MLP:
        return c->moe_intermediate_size;
    case DIM_SHARED_MLP:
        return c->moe_intermediate_size * c->num_shared_experts;
    }
    return 0;
}
