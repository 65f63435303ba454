/* model_shape.c - see model_shape.h. */
#include "model/model_shape.h"

#include <string.h>

#include "model/family.h"

typedef struct shape_family {
    const char *model_type;
    router_choice choice; /* where topk_method is not said */
    bool is_hybrid;
} shape_family;

/* The attention, the MLPs and the experts of all of them have the tensors of deepseek_v3. */
static const shape_family families[] = {
    {"deepseek_v2", ROUTER_GREEDY, false}, {"deepseek_v3", ROUTER_NOAUX_TC, false},
    {"kimi_k2", ROUTER_NOAUX_TC, false},   {"glm4_moe_lite", ROUTER_NOAUX_TC, false},
    {"youtu", ROUTER_NOAUX_TC, false},     {"kimi_linear", ROUTER_NOAUX_TC, true},
};
enum { NUM_FAMILIES = sizeof families / sizeof families[0] };

/* Other spellings of the keys that model/config.c knows. */
static const char *const spellings[][2] = {
    {"num_experts", "n_routed_experts"},
    {"num_experts_per_token", "num_experts_per_tok"},
    {"num_shared_experts", "n_shared_experts"},
    {"num_expert_group", "n_group"},
};
enum { NUM_SPELLINGS = sizeof spellings / sizeof spellings[0] };

enum { MAX_KDA_DIM = 1 << 12, MAX_CONV_WIDTH = 64 };

/* NULL: none has it. */
static const shape_family *family_of(const char *model_type)
{
    for (int i = 0; i < NUM_FAMILIES; i++) {
        if (strcmp(families[i].model_type, model_type) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

static const char *spelling_of(const json_t *object, const char *key)
{
    for (int i = 0; i < NUM_SPELLINGS; i++) {
        if (strcmp(spellings[i][0], key) == 0 && !key_is_set(object, spellings[i][1])) {
            return spellings[i][1];
        }
    }
    return key;
}

/* The same values under the keys that model/config.c knows. NULL: memory is out. */
static json_t *respell(const json_t *object)
{
    json_t *copy = json_object();
    const char *key;
    json_t *value;
    /* jansson's own loop takes objects that are not const, and changes none. */
    json_t *source = (json_t *)(uintptr_t)object;
    json_object_foreach(source, key, value)
    {
        if (!copy || json_object_set(copy, spelling_of(object, key), value) != 0) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy;
}

static mla_status mark_kda_layer(const json_document *doc, const json_t *number,
                                 const model_config *config, kda_shape *kda, mla_error *err)
{
    MLAI_CHECK(json_is_integer(number) && json_integer_value(number) >= 1 &&
                   json_integer_value(number) <= config->num_layers,
               MLA_ERR_CORRUPT, "%s: kda_layers names the layer %s of 1 to %d", doc->name,
               json_words_of(number).text, config->num_layers);
    size_t layer = (size_t)json_integer_value(number) - 1;
    uint64_t bit = UINT64_C(1) << (layer % 64);
    MLAI_CHECK(!(kda->is_layer[layer / 64] & bit), MLA_ERR_CORRUPT,
               "%s: kda_layers names the layer %zu twice", doc->name, layer + 1);
    kda->is_layer[layer / 64] |= bit;
    kda->num_layers++;
    return MLA_OK;
}

static mla_status read_kda_dims(const json_document *doc, const json_t *object,
                                kda_shape *kda, mla_error *err)
{
    int64_t heads;
    int64_t head_dim;
    int64_t conv;
    bool is_full_rank = false;
    MLAI_TRY(key_int(doc, object, "num_heads", 1, 1024, &heads, err));
    MLAI_TRY(key_int(doc, object, "head_dim", 1, MAX_KDA_DIM, &head_dim, err));
    MLAI_TRY(key_int(doc, object, "short_conv_kernel_size", 1, MAX_CONV_WIDTH, &conv, err));
    MLAI_TRY(key_bool(doc, object, "use_full_rank_gate", &is_full_rank, err));
    MLAI_CHECK(is_full_rank, MLA_ERR_UNSUPPORTED,
               "%s: no plan for a linear_attn_config without use_full_rank_gate",
               doc->name);
    kda->num_heads = (int32_t)heads;
    kda->head_dim = (int32_t)head_dim;
    kda->conv_width = (int32_t)conv;
    return MLA_OK;
}

static mla_status read_kda(const json_document *doc, model_shape *shape, mla_error *err)
{
    const json_t *object;
    const json_t *layers;
    const json_t *number;
    size_t i;
    MLAI_TRY(key_object(doc, doc->root, "linear_attn_config", &object, err));
    MLAI_TRY(read_kda_dims(doc, object, &shape->kda, err));
    MLAI_TRY(key_array(doc, object, "kda_layers", &layers, err));
    json_array_foreach(layers, i, number)
    {
        MLAI_TRY(mark_kda_layer(doc, number, &shape->config, &shape->kda, err));
    }
    return MLA_OK;
}

static mla_status read_hybrid(const json_document *doc, model_shape *shape, mla_error *err)
{
    const json_t *root = doc->root;
    MLAI_TRY(read_kda(doc, shape, err));
    MLAI_TRY(key_bool(doc, root, "mla_use_output_gate", &shape->has_output_gate, err));
    int64_t width = shape->expert_width;
    int64_t span = 0;
    if (key_is_set(root, "routed_expert_hidden_size")) {
        MLAI_TRY(key_int(doc, root, "routed_expert_hidden_size", 1, shape->expert_width,
                         &width, err));
    }
    if (key_is_set(root, "attn_res_block_size")) {
        MLAI_TRY(key_int(doc, root, "attn_res_block_size", 1, MODEL_SHAPE_MAX_LAYERS, &span,
                         err));
    }
    shape->expert_width = (int32_t)width;
    shape->residual_span = (int32_t)span;
    return MLA_OK;
}

static mla_status read_respelled(const json_document *doc, model_shape *shape,
                                 mla_error *err)
{
    const char *type;
    MLAI_TRY(key_string(doc, doc->root, "model_type", &type, err));
    const shape_family *family = family_of(type);
    MLAI_CHECK(family, MLA_ERR_UNSUPPORTED,
               "%s: no plan for model_type \"%.60s\"; there are deepseek_v2, deepseek_v3, "
               "kimi_k2, kimi_k3, kimi_linear, glm4_moe_lite and youtu",
               doc->name, type);
    shape->config.family = model_family_find("deepseek_v3");
    shape->config.choice = family->choice;
    MLAI_TRY(model_config_read_shape(doc, &shape->config, err));
    shape->expert_width = shape->config.hidden_size;
    return family->is_hybrid ? read_hybrid(doc, shape, err) : MLA_OK;
}

mla_status model_shape_read(mlai_ledger *ledger, const json_document *doc,
                            const json_t *object, model_shape *out, mla_error *err)
{
    if (key_is_set(object, "text_config")) {
        json_document nested = *doc;
        nested.root = (json_t *)(uintptr_t)object; /* only read */
        MLAI_TRY(key_object(&nested, object, "text_config", &object, err));
    }
    json_scope before = json_scope_enter(ledger, MLA_FOR_CONTEXT);
    json_document respelled = {.name = doc->name, .root = respell(object)};
    json_scope_leave(before);
    MLAI_CHECK(respelled.root, MLA_ERR_NO_MEMORY, "out of memory reading %s", doc->name);
    model_shape shape;
    memset(&shape, 0, sizeof shape);
    mla_status status = read_respelled(&respelled, &shape, err);
    document_close(&respelled);
    MLAI_TRY(status);
    *out = shape;
    return MLA_OK;
}

bool model_shape_is_kda(const model_shape *shape, int32_t layer)
{
    return layer < shape->config.num_layers &&
           (shape->kda.is_layer[layer / 64] >> (layer % 64) & 1U) != 0;
}

int32_t model_shape_num_latent_layers(const model_shape *shape)
{
    return shape->config.num_layers - shape->kda.num_layers;
}
