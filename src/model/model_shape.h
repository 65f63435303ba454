/* model_shape.h - what a config.json says of the sizes of a model's tensors. It covers more
 * families than can be run: all of dense MLA, and Kimi's hybrids, where some layers keep a
 * state (Kimi Delta Attention, KDA) in place of a row for each token. */
#ifndef MLA_MODEL_MODEL_SHAPE_H
#define MLA_MODEL_MODEL_SHAPE_H

#include "model/config.h"

enum { MODEL_SHAPE_MAX_LAYERS = 1024 };

typedef struct kda_shape {
    int32_t num_heads, head_dim, conv_width;
    int32_t num_layers; /* 0: the model has none */
    uint64_t is_layer[MODEL_SHAPE_MAX_LAYERS / 64];
} kda_shape;

typedef struct model_shape {
    model_config config;  /* shapes, family, choice; the rest is 0 */
    int32_t expert_width; /* what an expert reads and writes: hidden_size, or a latent */
    bool has_output_gate; /* on the MLA layers' attention */
    int32_t
        residual_span; /* layers that share a kept residual; 0: residuals are not mixed */
    kda_shape kda;
} model_shape;

/* object: a config.json of doc; a model's numbers may be in its text_config. ledger: used during
 * the call. Errors as of model_config_read. */
mla_status model_shape_read(mlai_ledger *ledger, const json_document *doc,
                            const json_t *object, model_shape *out, mla_error *err);

bool model_shape_is_kda(const model_shape *shape, int32_t layer);

/* Layers that keep a latent row for each token. */
int32_t model_shape_num_latent_layers(const model_shape *shape);

#endif
