/* config.c - config.json, key by key. */
#include "model/config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "model/family.h"
#include "model/file.h"
#include "model/json.h"
#include "model/rope_config.h"

#define MAX_CONFIG_BYTES ((size_t)1 << 20)
#define MAX_POSITIONS    (INT64_C(1) << 40)
#define MAX_ROUTED_SCALE 1e4

enum { MAX_HEADS = 1024, MAX_HEAD_DIM = 4096, MAX_EXPERTS = 4096, MAX_LAYERS = 1024 };
enum { MAX_WIDTH = 1 << 20, MAX_RANK = 1 << 16, MAX_VOCAB = 1 << 24 };

typedef struct int_key {
    const char *key;
    size_t offset; /* of an int32_t in model_config */
    int64_t min, max;
    int64_t fallback; /* where it is absent or null; -1: it must be there */
} int_key;

#define FIELD(name) offsetof(model_config, name)
enum { REQUIRED = -1 };

static const int_key core_keys[] = {
    {"vocab_size", FIELD(vocab_size), 1, MAX_VOCAB, REQUIRED},
    {"hidden_size", FIELD(hidden_size), 1, MAX_WIDTH, REQUIRED},
    {"num_hidden_layers", FIELD(num_layers), 1, MAX_LAYERS, REQUIRED},
    {"num_nextn_predict_layers", FIELD(num_mtp_layers), 0, MAX_LAYERS, 0},
    {"num_attention_heads", FIELD(num_heads), 1, MAX_HEADS, REQUIRED},
    {"q_lora_rank", FIELD(q_lora_rank), 1, MAX_RANK, 0},
    {"kv_lora_rank", FIELD(kv_lora_rank), 1, MAX_RANK, REQUIRED},
    {"qk_nope_head_dim", FIELD(qk_nope_head_dim), 1, MAX_HEAD_DIM, REQUIRED},
    {"qk_rope_head_dim", FIELD(qk_rope_head_dim), 2, MAX_HEAD_DIM, REQUIRED},
    {"v_head_dim", FIELD(v_head_dim), 1, MAX_HEAD_DIM, REQUIRED},
    {"intermediate_size", FIELD(intermediate_size), 1, MAX_WIDTH, REQUIRED},
    {"n_routed_experts", FIELD(num_experts), 1, MAX_EXPERTS, 0},
};

static const int_key expert_keys[] = {
    {"num_experts_per_tok", FIELD(experts_per_token), 1, MAX_EXPERTS, REQUIRED},
    {"moe_intermediate_size", FIELD(moe_intermediate_size), 1, MAX_WIDTH, REQUIRED},
    {"n_shared_experts", FIELD(num_shared_experts), 0, MAX_HEADS, 0},
    {"first_k_dense_replace", FIELD(first_moe_layer), 0, MAX_LAYERS, 0},
    {"moe_layer_freq", FIELD(moe_layer_freq), 1, MAX_LAYERS, 1},
    {"n_group", FIELD(num_groups), 1, MAX_EXPERTS, 1},
    {"topk_group", FIELD(top_groups), 1, MAX_EXPERTS, 1},
};
#undef FIELD

static mla_status read_ints(const json_document *doc, const int_key *keys, size_t num_keys,
                            model_config *config, mla_error *err)
{
    for (size_t i = 0; i < num_keys; i++) {
        const int_key *key = &keys[i];
        int64_t number = key->fallback;
        if (number == REQUIRED || key_is_set(doc->root, key->key)) {
            MLAI_TRY(key_int(doc, doc->root, key->key, key->min, key->max, &number, err));
        }
        int32_t value = (int32_t)number;
        memcpy((char *)config + key->offset, &value, sizeof value);
    }
    return MLA_OK;
}

typedef struct word {
    const char *text;
    int value;
} word;

static const word score_words[] = {
    {"softmax", ROUTER_SOFTMAX}, {"sigmoid", ROUTER_SIGMOID}, {NULL, 0}};
static const word choice_words[] = {{"greedy", ROUTER_GREEDY},
                                    {"group_limited_greedy", ROUTER_GROUP_LIMITED_GREEDY},
                                    {"noaux_tc", ROUTER_NOAUX_TC},
                                    {NULL, 0}};

/* Absent leaves *out as it is. */
static mla_status read_word(const json_document *doc, const char *key, const word *words,
                            int *out, mla_error *err)
{
    const char *text;
    if (!key_is_set(doc->root, key)) {
        return MLA_OK;
    }
    MLAI_TRY(key_string(doc, doc->root, key, &text, err));
    for (; words->text; words++) {
        if (strcmp(words->text, text) == 0) {
            *out = words->value;
            return MLA_OK;
        }
    }
    return MLAI_FAIL(MLA_ERR_UNSUPPORTED, "%s: %s \"%.60s\" is not supported", doc->name,
                     key, text);
}

static mla_status check_experts(const json_document *doc, const model_config *c,
                                mla_error *err)
{
    MLAI_CHECK(c->num_experts % c->num_groups == 0 && c->top_groups <= c->num_groups,
               MLA_ERR_CORRUPT,
               "%s: n_routed_experts %d, n_group %d and topk_group %d do not divide into "
               "groups",
               doc->name, c->num_experts, c->num_groups, c->top_groups);
    int32_t in_reach = c->num_experts / c->num_groups * c->top_groups;
    MLAI_CHECK(c->experts_per_token <= in_reach, MLA_ERR_CORRUPT,
               "%s: num_experts_per_tok %d is more than the %d experts of topk_group %d",
               doc->name, c->experts_per_token, in_reach, c->top_groups);
    MLAI_CHECK(c->moe_intermediate_size <= MAX_WIDTH / (c->num_shared_experts + 1),
               MLA_ERR_CORRUPT,
               "%s: n_shared_experts %d of moe_intermediate_size %d are too wide",
               doc->name, c->num_shared_experts, c->moe_intermediate_size);
    return MLA_OK;
}

/* The numbers that give the experts' tensors their shapes. config->choice: what holds where
 * topk_method says nothing. */
static mla_status read_expert_numbers(const json_document *doc, model_config *config,
                                      mla_error *err)
{
    int choice = (int)config->choice;
    MLAI_TRY(read_ints(doc, expert_keys, sizeof expert_keys / sizeof expert_keys[0], config,
                       err));
    MLAI_TRY(read_word(doc, "topk_method", choice_words, &choice, err));
    config->choice = (router_choice)choice;
    return check_experts(doc, config, err);
}

static mla_status read_experts(const json_document *doc, model_config *config,
                               mla_error *err)
{
    config->moe_layer_freq = 1;
    config->num_groups = 1;
    config->top_groups = 1;
    config->routed_scale = 1.0F;
    if (config->num_experts == 0) {
        return MLA_OK;
    }
    int score = (int)config->family->score;
    config->choice = config->family->choice;
    MLAI_TRY(read_expert_numbers(doc, config, err));
    MLAI_TRY(read_word(doc, "scoring_func", score_words, &score, err));
    config->score = (router_score)score;
    config->is_topk_normed = config->family->is_topk_normed;
    MLAI_TRY(key_bool(doc, doc->root, "norm_topk_prob", &config->is_topk_normed, err));
    double scale = 1.0;
    if (key_is_set(doc->root, "routed_scaling_factor")) {
        MLAI_TRY(key_real(doc, doc->root, "routed_scaling_factor", 1e-6, MAX_ROUTED_SCALE,
                          &scale, err));
    }
    config->routed_scale = (float)scale;
    return MLA_OK;
}

static mla_status find_family(const json_document *doc, const model_family **out,
                              mla_error *err)
{
    const char *type;
    char names[96];
    MLAI_TRY(key_string(doc, doc->root, "model_type", &type, err));
    *out = model_family_find(type);
    MLAI_CHECK(*out, MLA_ERR_UNSUPPORTED,
               "%s: model_type \"%.60s\" is not supported; supported: %s", doc->name, type,
               model_family_names(names, sizeof names));
    return MLA_OK;
}

/* What would change the numbers and is not implemented is refused by name. */
static mla_status refuse_unsupported(const json_document *doc, mla_error *err)
{
    const json_t *root = doc->root;
    const char *act = "silu";
    if (key_is_set(root, "quantization_config")) {
        const json_t *quantized = json_object_get(root, "quantization_config");
        return MLAI_FAIL(MLA_ERR_UNSUPPORTED,
                         "%s: quantization_config (quant_method %s) is not supported",
                         doc->name,
                         json_words_of(json_object_get(quantized, "quant_method")).text);
    }
    if (key_is_set(root, "hidden_act")) {
        MLAI_TRY(key_string(doc, root, "hidden_act", &act, err));
    }
    MLAI_CHECK(strcmp(act, "silu") == 0, MLA_ERR_UNSUPPORTED,
               "%s: hidden_act \"%.60s\" is not supported; supported: silu", doc->name,
               act);
    return MLA_OK;
}

static mla_status read_norms(const json_document *doc, model_config *config, mla_error *err)
{
    double eps;
    MLAI_TRY(key_real(doc, doc->root, "rms_norm_eps", 0.0, 1.0, &eps, err));
    double latent =
        config->family->latent_norm_eps > 0 ? config->family->latent_norm_eps : eps;
    if (key_is_set(doc->root, "latent_norm_eps")) {
        MLAI_TRY(key_real(doc, doc->root, "latent_norm_eps", 0.0, 1.0, &latent, err));
    }
    config->rms_norm_eps = (float)eps;
    config->latent_norm_eps = (float)latent;
    return MLA_OK;
}

static mla_status read_attention(const json_document *doc, model_config *config,
                                 mla_error *err)
{
    const json_t *root = doc->root;
    MLAI_CHECK(config->qk_rope_head_dim % 2 == 0, MLA_ERR_CORRUPT,
               "%s: qk_rope_head_dim is %d and should be even", doc->name,
               config->qk_rope_head_dim);
    MLAI_TRY(key_bool(doc, root, "attention_bias", &config->has_attention_bias, err));
    MLAI_TRY(key_bool(doc, root, "tie_word_embeddings", &config->is_embedding_tied, err));
    MLAI_TRY(key_int(doc, root, "max_position_embeddings", 1, MAX_POSITIONS,
                     &config->max_positions, err));
    config->rope.is_interleaved = config->family->is_rope_interleaved;
    MLAI_TRY(rope_config_read(doc, &config->rope, err));
    double m = rope_m(config->rope.factor, config->rope.mscale_all_dim);
    config->softmax_scale =
        (float)(m * m / sqrt(config->qk_nope_head_dim + config->qk_rope_head_dim));
    return MLA_OK;
}

bool model_config_is_eos(const model_config *config, int32_t token)
{
    for (int32_t i = 0; i < config->num_eos_tokens; i++) {
        if (config->eos_tokens[i] == token) {
            return true;
        }
    }
    return false;
}

mla_status model_config_add_eos(model_config *config, int64_t id, mla_error *err)
{
    enum { MAX = sizeof config->eos_tokens / sizeof config->eos_tokens[0] };
    if (id < 0) {
        return MLA_OK;
    }
    MLAI_CHECK(id < config->vocab_size, MLA_ERR_CORRUPT,
               "end token %lld is not in the vocabulary of %d", (long long)id,
               config->vocab_size);
    if (model_config_is_eos(config, (int32_t)id)) {
        return MLA_OK;
    }
    MLAI_CHECK(config->num_eos_tokens < MAX, MLA_ERR_UNSUPPORTED,
               "end token %lld is one more than the %d that are kept", (long long)id, MAX);
    config->eos_tokens[config->num_eos_tokens++] = (int32_t)id;
    return MLA_OK;
}

/* One id, a list of ids, or null. */
static mla_status read_eos(const json_document *doc, model_config *config, mla_error *err)
{
    const json_t *value = json_object_get(doc->root, "eos_token_id");
    if (!value || json_is_null(value)) {
        return MLA_OK;
    }
    size_t num = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < num; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        MLAI_CHECK(json_is_integer(id) && json_integer_value(id) >= 0, MLA_ERR_CORRUPT,
                   "%s: eos_token_id is %s and should be a token id", doc->name,
                   json_words_of(id).text);
        mla_status status = model_config_add_eos(config, json_integer_value(id), err);
        if (status != MLA_OK) {
            mlai_error_prefix(err, "%s: eos_token_id", doc->name);
            return status;
        }
    }
    return MLA_OK;
}

static mla_status read_ends(const json_document *doc, model_config *config, mla_error *err)
{
    int64_t bos = -1;
    if (key_is_set(doc->root, "bos_token_id")) {
        MLAI_TRY(
            key_int(doc, doc->root, "bos_token_id", 0, config->vocab_size - 1, &bos, err));
    }
    config->bos_token = (int32_t)bos;
    return read_eos(doc, config, err);
}

static mla_status read_document(const json_document *doc, model_config *config,
                                mla_error *err)
{
    MLAI_TRY(find_family(doc, &config->family, err));
    MLAI_TRY(refuse_unsupported(doc, err));
    MLAI_TRY(
        read_ints(doc, core_keys, sizeof core_keys / sizeof core_keys[0], config, err));
    MLAI_TRY(read_norms(doc, config, err));
    MLAI_TRY(read_attention(doc, config, err));
    MLAI_TRY(read_experts(doc, config, err));
    return read_ends(doc, config, err);
}

static mla_status read_generation(mlai_ledger *ledger, const char *dir,
                                  model_config *config, mla_error *err)
{
    static const char name[] = "generation_config.json";
    json_document generation = {0};
    if (!file_is_there(dir, name)) {
        return MLA_OK;
    }
    MLAI_TRY(document_read(ledger, dir, name, MAX_CONFIG_BYTES, &generation, err));
    mla_status status = read_eos(&generation, config, err);
    document_close(&generation);
    return status;
}

mla_status model_config_read(mlai_ledger *ledger, const char *dir, model_config *out,
                             mla_error *err)
{
    json_document doc = {0};
    model_config config;
    memset(&config, 0, sizeof config);
    MLAI_TRY(document_read(ledger, dir, "config.json", MAX_CONFIG_BYTES, &doc, err));
    mla_status status = read_document(&doc, &config, err);
    document_close(&doc);
    MLAI_TRY(status);
    MLAI_TRY(read_generation(ledger, dir, &config, err));
    *out = config;
    return MLA_OK;
}

bool model_config_is_moe_layer(const model_config *config, int32_t layer)
{
    return config->num_experts > 0 && layer >= config->first_moe_layer &&
           layer % config->moe_layer_freq == 0;
}

mla_status model_config_read_shape(const json_document *doc, model_config *config,
                                   mla_error *err)
{
    const json_t *root = doc->root;
    MLAI_TRY(
        read_ints(doc, core_keys, sizeof core_keys / sizeof core_keys[0], config, err));
    MLAI_TRY(key_bool(doc, root, "attention_bias", &config->has_attention_bias, err));
    MLAI_TRY(key_bool(doc, root, "tie_word_embeddings", &config->is_embedding_tied, err));
    config->moe_layer_freq = 1;
    config->num_groups = 1;
    return config->num_experts > 0 ? read_expert_numbers(doc, config, err) : MLA_OK;
}
