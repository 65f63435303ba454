/* weight_sizes.c - see weight_sizes.h. The tensors of dense MLA models are those that
 * model/family.c loads; below are the others. */
#include "model/weight_sizes.h"

#include <string.h>

#include "model/family.h"
#include "model/weight_counter.h"

static bool is_cut(tensor_dim dim)
{
    static const tensor_dim cut[] = {DIM_VOCAB, DIM_QUERY,      DIM_KEY_VALUE, DIM_VALUE,
                                     DIM_MLP,   DIM_EXPERT_MLP, DIM_SHARED_MLP};
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        if (cut[i] == dim) {
            return true;
        }
    }
    return false;
}

static bool is_attention(const tensor_rule *rule)
{
    return strncmp(rule->name, "self_attn.", sizeof "self_attn." - 1) == 0;
}

static weight_part part_of(const tensor_rule *rule)
{
    if (rule->scope == TENSOR_OF_EXPERT) {
        return PART_EXPERTS;
    }
    if (rule->scope == TENSOR_OF_MODEL) {
        return rule->num_in == DIM_NONE ? PART_OTHERS : PART_EMBEDDING;
    }
    if (is_attention(rule)) {
        return PART_ATTENTION;
    }
    bool is_small = rule->num_in == DIM_NONE || rule->num_out == DIM_EXPERTS;
    return is_small ? PART_OTHERS : PART_MLP;
}

static int32_t width_of(const model_shape *shape, const tensor_rule *rule, tensor_dim dim)
{
    if (rule->scope == TENSOR_OF_EXPERT && dim == DIM_HIDDEN) {
        return shape->expert_width;
    }
    return tensor_dim_of(&shape->config, dim);
}

static mla_status count_rule(weight_counter *counter, const tensor_rule *rule,
                             mla_error *err)
{
    const model_shape *shape = counter->shape;
    bool is_vector = rule->num_in == DIM_NONE;
    const counted_tensor tensor = {
        .name = rule->name,
        .part = part_of(rule),
        .num_rows = width_of(shape, rule, rule->num_out),
        .num_columns = is_vector ? 1 : width_of(shape, rule, rule->num_in),
        .is_vector = is_vector || rule->num_out == DIM_EXPERTS,
        .is_f32 = is_vector && rule->num_out == DIM_EXPERTS,
        .split = is_cut(rule->num_out)  ? SPLIT_ROWS
                 : is_cut(rule->num_in) ? SPLIT_COLUMNS
                                        : SPLIT_NONE,
        .may_be_uneven = rule->num_out == DIM_VOCAB,
        .num_copies = 1,
    };
    return weight_counter_add(counter, &tensor, err);
}

/* Those of scope TENSOR_OF_LAYER and below. */
static mla_status count_layer_rules(weight_counter *counter, int32_t layer, mla_error *err)
{
    const model_family *family = counter->shape->config.family;
    bool is_kda = model_shape_is_kda(counter->shape, layer);
    for (int32_t i = 0; i < family->num_tensors; i++) {
        const tensor_rule *rule = &family->tensors[i];
        bool is_there = rule->scope != TENSOR_OF_MODEL &&
                        (!rule->is_there || rule->is_there(&counter->shape->config, layer));
        if (is_there && !(is_kda && is_attention(rule))) {
            MLAI_TRY(count_rule(counter, rule, err));
        }
    }
    return MLA_OK;
}

static mla_status count_model_rules(weight_counter *counter, mla_error *err)
{
    const model_family *family = counter->shape->config.family;
    for (int32_t i = 0; i < family->num_tensors; i++) {
        const tensor_rule *rule = &family->tensors[i];
        if (rule->scope == TENSOR_OF_MODEL &&
            (!rule->is_there || rule->is_there(&counter->shape->config, 0))) {
            MLAI_TRY(count_rule(counter, rule, err));
        }
    }
    return MLA_OK;
}

static mla_status count_all(weight_counter *counter, const counted_tensor *tensors,
                            size_t num, mla_error *err)
{
    for (size_t i = 0; i < num; i++) {
        MLAI_TRY(weight_counter_add(counter, &tensors[i], err));
    }
    return MLA_OK;
}
#define COUNT_ALL(counter, tensors)                                                        \
    count_all(counter, tensors, sizeof(tensors) / sizeof((tensors)[0]), err)

static counted_tensor matrix_of(const char *name, int32_t rows, int32_t columns,
                                weight_split split)
{
    return (counted_tensor){.name = name,
                            .part = PART_ATTENTION,
                            .num_rows = rows,
                            .num_columns = columns,
                            .split = split,
                            .num_copies = 1};
}

static counted_tensor vector_of(const char *name, int32_t num, bool is_f32)
{
    return (counted_tensor){.name = name,
                            .part = PART_OTHERS,
                            .num_rows = num,
                            .num_columns = 1,
                            .is_vector = true,
                            .is_f32 = is_f32,
                            .num_copies = 1};
}

/* Kimi Delta Attention: as many heads' queries, keys and values as each other, a convolution
 * over each, a low-rank gate that forgets, and a full one over the output. */
static mla_status count_kda(weight_counter *counter, mla_error *err)
{
    const kda_shape *kda = &counter->shape->kda;
    int32_t hidden = counter->shape->config.hidden_size;
    int32_t width = kda->num_heads * kda->head_dim;
    counted_tensor tensors[] = {
        matrix_of("self_attn.qkv_proj", width, hidden, SPLIT_ROWS),
        matrix_of("self_attn.qkv_conv1d", width, kda->conv_width, SPLIT_ROWS),
        matrix_of("self_attn.f_a_proj", kda->head_dim, hidden, SPLIT_NONE),
        matrix_of("self_attn.f_b_proj", width, kda->head_dim, SPLIT_ROWS),
        matrix_of("self_attn.b_proj", kda->num_heads, hidden, SPLIT_ROWS),
        matrix_of("self_attn.g_proj", width, hidden, SPLIT_ROWS),
        matrix_of("self_attn.o_proj", hidden, width, SPLIT_COLUMNS),
        matrix_of("self_attn.dt_bias", width, 1, SPLIT_ROWS),
        vector_of("self_attn.A_log", kda->head_dim, true), /* the file pads it to this */
        vector_of("self_attn.o_norm", kda->head_dim, true),
    };
    enum { QKV, CONV, DT_BIAS = 7 };
    tensors[QKV].num_copies = 3;
    tensors[CONV].num_copies = 3;
    tensors[CONV].is_f32 = true;
    tensors[DT_BIAS].is_f32 = true;
    return COUNT_ALL(counter, tensors);
}

/* What hybrids have beside that: a gate on the MLA layers, projections into the experts'
 * latent and out of it, and four vectors that mix the residuals. */
static mla_status count_additions(weight_counter *counter, int32_t layer, mla_error *err)
{
    const model_shape *shape = counter->shape;
    const model_config *config = &shape->config;
    int32_t hidden = config->hidden_size;
    int32_t latent = shape->expert_width;
    if (shape->has_output_gate && !model_shape_is_kda(shape, layer)) {
        const counted_tensor gate[] = {matrix_of("self_attn.g_proj",
                                                 config->num_heads * config->v_head_dim,
                                                 hidden, SPLIT_ROWS)};
        MLAI_TRY(COUNT_ALL(counter, gate));
    }
    if (latent != hidden && model_config_is_moe_layer(config, layer)) {
        counted_tensor tensors[] = {
            matrix_of("routed_expert_down_proj", latent, hidden, SPLIT_ROWS),
            matrix_of("routed_expert_up_proj", hidden, latent, SPLIT_COLUMNS),
            vector_of("routed_expert_norm", latent, false),
        };
        tensors[0].part = PART_MLP;
        tensors[1].part = PART_MLP;
        MLAI_TRY(COUNT_ALL(counter, tensors));
    }
    if (shape->residual_span > 0) {
        counted_tensor mix[] = {vector_of("attention and mlp residual mix", hidden, false)};
        mix[0].num_copies = 4;
        MLAI_TRY(COUNT_ALL(counter, mix));
    }
    return MLA_OK;
}

static mla_status count_layers(weight_counter *counter, mla_error *err)
{
    const model_shape *shape = counter->shape;
    for (int32_t layer = 0; layer < shape->config.num_layers; layer++) {
        MLAI_TRY(count_layer_rules(counter, layer, err));
        if (model_shape_is_kda(shape, layer)) {
            MLAI_TRY(count_kda(counter, err));
        }
        MLAI_TRY(count_additions(counter, layer, err));
    }
    return MLA_OK;
}

static mla_status count_target(weight_counter *counter, mla_error *err)
{
    MLAI_TRY(count_model_rules(counter, err));
    MLAI_TRY(count_layers(counter, err));
    if (counter->shape->residual_span > 0) {
        counted_tensor mix[] = {
            vector_of("output residual mix", counter->shape->config.hidden_size, false)};
        mix[0].num_copies = 2;
        MLAI_TRY(COUNT_ALL(counter, mix));
    }
    return MLA_OK;
}

/* A layer like any other, three norms, a projection of two rows into one, and the embedding and
 * the head again. */
static mla_status count_mtp(weight_counter *counter, mla_error *err)
{
    const model_config *config = &counter->shape->config;
    int32_t hidden = config->hidden_size;
    for (int32_t i = 0; i < config->num_mtp_layers; i++) {
        counted_tensor tensors[] = {
            vector_of("enorm, hnorm and shared_head.norm", hidden, false),
            matrix_of("eh_proj", hidden, 2 * hidden, SPLIT_NONE),
            matrix_of("embed_tokens and shared_head.head", config->vocab_size, hidden,
                      SPLIT_ROWS),
        };
        enum { NORMS, PROJECTION, TABLES };
        tensors[NORMS].num_copies = 3;
        tensors[PROJECTION].is_vector = true; /* stored as the norms are */
        tensors[TABLES].part = PART_EMBEDDING;
        tensors[TABLES].may_be_uneven = true;
        tensors[TABLES].num_copies = config->is_embedding_tied ? 1 : 2;
        MLAI_TRY(COUNT_ALL(counter, tensors));
        MLAI_TRY(count_layer_rules(counter, config->num_layers + i, err));
    }
    return MLA_OK;
}

mla_status weight_sizes_of(const model_shape *shape, const weight_storage *storage,
                           weight_sizes *out, mla_error *err)
{
    weight_counter target;
    weight_counter mtp;
    MLAI_TRY(weight_counter_begin(&target, shape, storage, err));
    mtp = target;
    MLAI_TRY(count_target(&target, err));
    MLAI_TRY(count_mtp(&mtp, err));
    weight_sizes sizes = {
        .embedding_bytes = target.bytes[PART_EMBEDDING].bytes,
        .attention_bytes = target.bytes[PART_ATTENTION].bytes,
        .mlp_bytes = target.bytes[PART_MLP].bytes,
        .expert_bytes = target.bytes[PART_EXPERTS].bytes,
        .other_bytes = target.bytes[PART_OTHERS].bytes,
        .num_parameters = target.parameters.bytes,
        .num_mtp_parameters = mtp.parameters.bytes,
    };
    MLAI_TRY(weight_counter_total(&target, &sizes.bytes, err));
    MLAI_TRY(weight_counter_total(&mtp, &sizes.mtp_bytes, err));
    *out = sizes;
    return MLA_OK;
}
