/* config.h - a checkpoint's config.json, checked and in our words. */
#ifndef MLA_MODEL_CONFIG_H
#define MLA_MODEL_CONFIG_H

#include <stdbool.h>

#include "base/ledger.h"
#include "model/json.h"

typedef enum router_score { ROUTER_SOFTMAX = 1, ROUTER_SIGMOID } router_score;
typedef enum router_choice {
    ROUTER_GREEDY = 1,           /* top k of the scores */
    ROUTER_GROUP_LIMITED_GREEDY, /* groups by their maximum, then top k */
    ROUTER_NOAUX_TC,             /* groups by their two best biased scores, then top k */
} router_choice;

typedef struct rope_config {
    double theta;
    bool is_interleaved; /* pairs (2i, 2i+1), else (i, i + R/2) */
    bool is_yarn;
    double factor, beta_fast, beta_slow, mscale, mscale_all_dim;
    int64_t original_max_positions;
} rope_config;

/* 0.1 * mscale * ln(factor) + 1, or 1 where factor <= 1. cos and sin are multiplied by
 * m(factor, mscale) / m(factor, mscale_all_dim), the softmax scale by
 * m(factor, mscale_all_dim)^2. */
double rope_m(double factor, double mscale);

struct model_family;

typedef struct model_config {
    const struct model_family *family; /* static storage */
    int32_t vocab_size, hidden_size, num_layers, num_heads;
    int32_t num_mtp_layers; /* num_nextn_predict_layers: in the file, not loaded */
    int32_t q_lora_rank;    /* 0: no q_a/q_b, a plain q_proj */
    int32_t kv_lora_rank;   /* D */
    int32_t qk_nope_head_dim, qk_rope_head_dim, v_head_dim; /* P, R, V */
    bool has_attention_bias, is_embedding_tied;
    int32_t intermediate_size;
    /* MoE; num_experts 0: none. Layer i is MoE iff i >= first_moe_layer and
     * i % moe_layer_freq == 0. */
    int32_t num_experts, experts_per_token, num_shared_experts, moe_intermediate_size;
    int32_t first_moe_layer, moe_layer_freq, num_groups, top_groups;
    bool is_topk_normed;
    float routed_scale;
    router_score score;
    router_choice choice;
    float rms_norm_eps, latent_norm_eps; /* the latter: q_a and kv_a norms */
    rope_config rope;
    float softmax_scale; /* (P+R)^-0.5, times m^2 under yarn */
    int64_t max_positions;
    int32_t bos_token;                     /* -1: none */
    int32_t eos_tokens[8], num_eos_tokens; /* config and generation_config together */
} model_config;

bool model_config_is_eos(const model_config *config, int32_t token);

/* Adds an end token (the tokenizer's, for instance) unless it is among them. id < 0: none,
 * nothing is done. */
mla_status model_config_add_eos(model_config *config, int64_t id, mla_error *err);

/* Reads DIR/config.json (and generation_config.json for EOS, if there). ledger: used during
 * the call. Every refusal names the key and the value. Every number is within a limit, so
 * that no product of two of them passes 2^31. */
mla_status model_config_read(mlai_ledger *ledger, const char *dir, model_config *out,
                             mla_error *err);

/* Only the numbers that give tensors their shapes, which say how much memory a model is that
 * this library need not be able to run. config: all 0 before but for family and choice, which
 * hold where the document says nothing; the same limits on every number. */
mla_status model_config_read_shape(const json_document *doc, model_config *config,
                                   mla_error *err);

bool model_config_is_moe_layer(const model_config *config, int32_t layer);

#endif
