/* family.h - what sets one family of MLA models apart from another, as data: the names of
 * its tensors with their shapes, and what a config.json of it leaves unsaid. A new family
 * is a new row. */
#ifndef MLA_MODEL_FAMILY_H
#define MLA_MODEL_FAMILY_H

#include "model/config.h"

/* A dimension of a tensor, computed from the config. */
typedef enum tensor_dim {
    DIM_NONE, /* of a vector */
    DIM_VOCAB,
    DIM_HIDDEN,
    DIM_QUERY, /* H*(P+R) */
    DIM_QUERY_RANK,
    DIM_LATENT,
    DIM_LATENT_ROPE, /* D+R */
    DIM_KEY_VALUE,   /* H*(P+V) */
    DIM_VALUE,       /* H*V */
    DIM_MLP,
    DIM_EXPERTS,
    DIM_EXPERT_MLP,
    DIM_SHARED_MLP, /* of all shared experts side by side */
} tensor_dim;

typedef enum tensor_scope {
    TENSOR_OF_MODEL,  /* once; the name is whole; offset in model_weights */
    TENSOR_OF_LAYER,  /* after layer_prefix and the layer; offset in layer_weights */
    TENSOR_OF_EXPERT, /* after that, expert_prefix and the expert; offset in mlp_weights */
} tensor_scope;

/* One tensor of the checkpoint and the field of model/weights.h that it fills. */
typedef struct tensor_rule {
    const char *name;
    tensor_scope scope;
    bool (*is_there)(const model_config *config, int32_t layer); /* NULL: always */
    tensor_dim num_out, num_in;
    size_t offset; /* of a matrix, or of a vector where num_in is DIM_NONE */
} tensor_rule;

typedef struct model_family {
    const char *model_types[4]; /* NULL after the last */
    const char *layer_prefix, *expert_prefix;
    const tensor_rule *tensors;
    int32_t num_tensors;
    /* What holds where config.json says nothing. */
    router_score score;
    router_choice choice;
    bool is_topk_normed, is_rope_interleaved;
    double latent_norm_eps; /* 0: that of the other norms */
} model_family;

const model_family *model_family_find(const char *model_type); /* NULL: none */

/* The supported model types, for an error: "deepseek_v3, ...". Returns `out`. */
const char *model_family_names(char *out, size_t bytes);

int32_t tensor_dim_of(const model_config *config, tensor_dim dim);

#endif
