/* weights.c - the tensors of the family's table, found, checked and put where the forward
 * pass wants them. Two passes over the same table: the first finds every tensor and refuses
 * what is missing, wrong or left over; only then is room taken for what the config counts,
 * so that no number of a config.json is believed before the file has shown its tensors. */
#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#include "attention/context.h"
#include "model/checkpoint.h"
#include "model/family.h"

enum { MAX_NAME = 192 };

struct weight_store {
    mlai_ledger *ledger;
    mapped_files mapped;
    mlp_weights *experts; /* [num_moe_layers][E] */
    size_t num_experts;   /* in all layers */
    size_t num_layers;
};

/* One place of the table: a rule in a layer, for an expert. */
typedef struct place {
    const tensor_rule *rule;
    int32_t layer, expert;
} place;

typedef mla_status (*visit_place)(void *user, const place *place, mla_error *err);

static mla_status visit_experts(const model_config *config, place at, visit_place visit,
                                void *user, mla_error *err)
{
    int32_t num = at.rule->scope == TENSOR_OF_EXPERT ? config->num_experts : 1;
    for (at.expert = 0; at.expert < num; at.expert++) {
        MLAI_TRY(visit(user, &at, err));
    }
    return MLA_OK;
}

static mla_status visit_layers(const model_config *config, const tensor_rule *rule,
                               visit_place visit, void *user, mla_error *err)
{
    int32_t num = rule->scope == TENSOR_OF_MODEL ? 1 : config->num_layers;
    for (int32_t layer = 0; layer < num; layer++) {
        if (!rule->is_there || rule->is_there(config, layer)) {
            const place at = {.rule = rule, .layer = layer};
            MLAI_TRY(visit_experts(config, at, visit, user, err));
        }
    }
    return MLA_OK;
}

/* Every tensor that a model of this config has. */
static mla_status visit_all(const model_config *config, visit_place visit, void *user,
                            mla_error *err)
{
    for (int32_t i = 0; i < config->family->num_tensors; i++) {
        MLAI_TRY(visit_layers(config, &config->family->tensors[i], visit, user, err));
    }
    return MLA_OK;
}

static void name_of(const model_config *config, const place *at, char out[MAX_NAME])
{
    const model_family *family = config->family;
    switch (at->rule->scope) {
    case TENSOR_OF_MODEL:
        (void)snprintf(out, MAX_NAME, "%s", at->rule->name);
        break;
    case TENSOR_OF_LAYER:
        (void)snprintf(out, MAX_NAME, "%s%d.%s", family->layer_prefix, at->layer,
                       at->rule->name);
        break;
    case TENSOR_OF_EXPERT:
        (void)snprintf(out, MAX_NAME, "%s%d.%s%d.%s", family->layer_prefix, at->layer,
                       family->expert_prefix, at->expert, at->rule->name);
        break;
    }
}

typedef struct tensor_resolver {
    const model_config *config;
    checkpoint *set;
    model_weights *weights;
} tensor_resolver;

static mla_status check_type(const stored_tensor *tensor, mla_error *err)
{
    MLAI_CHECK(tensor->type == TENSOR_BF16 || tensor->type == TENSOR_F32,
               MLA_ERR_UNSUPPORTED, "%s: tensor %.80s is %s, and BF16 and F32 are read",
               tensor->file, tensor->name, tensor_type_name(tensor->type));
    return MLA_OK;
}

static mla_status check_shape(const stored_tensor *tensor, int32_t num_out, int32_t num_in,
                              mla_error *err)
{
    bool is_matrix = num_in > 0;
    bool fits = tensor->num_dims == (is_matrix ? 2 : 1) && tensor->dims[0] == num_out &&
                (!is_matrix || tensor->dims[1] == num_in);
    if (fits) {
        return MLA_OK;
    }
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, is_matrix ? "%d, %d" : "%d", num_out, num_in);
    MLAI_CHECK(tensor->num_dims == 1 || tensor->num_dims == 2, MLA_ERR_CORRUPT,
               "%s: tensor %.80s has %d dimensions, and the config asks for [%s]",
               tensor->file, tensor->name, tensor->num_dims, wanted);
    if (tensor->num_dims == 1) {
        return MLAI_FAIL(MLA_ERR_CORRUPT,
                         "%s: tensor %.80s is [%lld], and the config asks for [%s]",
                         tensor->file, tensor->name, (long long)tensor->dims[0], wanted);
    }
    return MLAI_FAIL(MLA_ERR_CORRUPT,
                     "%s: tensor %.80s is [%lld, %lld], and the config asks for [%s]",
                     tensor->file, tensor->name, (long long)tensor->dims[0],
                     (long long)tensor->dims[1], wanted);
}

/* First pass. */
static mla_status check_place(void *user, const place *at, mla_error *err)
{
    const tensor_resolver *resolver = user;
    char name[MAX_NAME];
    name_of(resolver->config, at, name);
    stored_tensor *tensor = checkpoint_find(resolver->set, name);
    MLAI_CHECK(tensor, MLA_ERR_CORRUPT, "tensor %s is missing from the checkpoint", name);
    MLAI_TRY(check_type(tensor, err));
    tensor->is_used = true;
    return check_shape(tensor, tensor_dim_of(resolver->config, at->rule->num_out),
                       tensor_dim_of(resolver->config, at->rule->num_in), err);
}

/* The layers after the last are those that predict further tokens; they are known and not
 * read. */
static bool is_mtp(const model_config *config, const char *name)
{
    size_t prefix = strlen(config->family->layer_prefix);
    if (strncmp(name, config->family->layer_prefix, prefix) != 0) {
        return false;
    }
    int32_t layer = 0;
    const char *at = name + prefix;
    for (; *at >= '0' && *at <= '9' && layer < (1 << 20); at++) {
        layer = layer * 10 + (*at - '0');
    }
    return *at == '.' && at > name + prefix && layer >= config->num_layers &&
           layer < config->num_layers + config->num_mtp_layers;
}

static mla_status check_leftover(const tensor_resolver *resolver, mla_error *err)
{
    for (size_t i = 0; i < resolver->set->num; i++) {
        const stored_tensor *tensor = resolver->set->sorted[i];
        MLAI_CHECK(tensor->is_used || is_mtp(resolver->config, tensor->name),
                   MLA_ERR_CORRUPT,
                   "%s: tensor %.80s is left over: no part of this model reads it",
                   tensor->file, tensor->name);
    }
    return MLA_OK;
}

static void *field_of(const tensor_resolver *resolver, const place *at)
{
    model_weights *weights = resolver->weights;
    char *base = NULL;
    switch (at->rule->scope) {
    case TENSOR_OF_MODEL:
        base = (char *)weights;
        break;
    case TENSOR_OF_LAYER:
        base = (char *)&weights->layers[at->layer];
        break;
    case TENSOR_OF_EXPERT:
        base = (char *)&weights->layers[at->layer].experts[at->expert];
        break;
    }
    return base + at->rule->offset;
}

/* Second pass: nothing can fail any more. */
static mla_status fill_place(void *user, const place *at, mla_error *err)
{
    (void)err;
    const tensor_resolver *resolver = user;
    char name[MAX_NAME];
    name_of(resolver->config, at, name);
    const stored_tensor *tensor = checkpoint_find(resolver->set, name);
    mla_dtype dtype = tensor->type == TENSOR_BF16 ? MLA_BF16 : MLA_F32;
    void *field = field_of(resolver, at);
    if (at->rule->num_in == DIM_NONE) {
        *(vector *)field = (vector){tensor->data, dtype, (int32_t)tensor->dims[0]};
    } else {
        *(matrix *)field = (matrix){tensor->data, dtype, (int32_t)tensor->dims[0],
                                    (int32_t)tensor->dims[1]};
    }
    return MLA_OK;
}

static mla_status take_layers(struct weight_store *store, const model_config *config,
                              model_weights *weights, mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(mlai_ledger_take_zeroed(store->ledger, MLA_FOR_CONTEXT,
                                     (size_t)config->num_layers, sizeof(layer_weights),
                                     "the table of layers", &memory, err));
    weights->layers = memory;
    store->num_layers = (size_t)config->num_layers;
    for (int32_t i = 0; i < config->num_layers; i++) {
        store->num_experts +=
            model_config_is_moe_layer(config, i) ? (size_t)config->num_experts : 0;
    }
    if (store->num_experts == 0) {
        return MLA_OK;
    }
    MLAI_TRY(mlai_ledger_take_zeroed(store->ledger, MLA_FOR_CONTEXT, store->num_experts,
                                     sizeof(mlp_weights), "the table of experts", &memory,
                                     err));
    store->experts = memory;
    return MLA_OK;
}

static void hand_out_experts(const model_config *config, model_weights *weights)
{
    mlp_weights *next = weights->store->experts;
    for (int32_t i = 0; i < config->num_layers; i++) {
        if (model_config_is_moe_layer(config, i)) {
            weights->layers[i].experts = next;
            next += config->num_experts;
        }
    }
}

static mla_status resolve(tensor_resolver *resolver, mla_error *err)
{
    const model_config *config = resolver->config;
    model_weights *weights = resolver->weights;
    MLAI_TRY(visit_all(config, check_place, resolver, err));
    MLAI_TRY(check_leftover(resolver, err));
    MLAI_TRY(take_layers(weights->store, config, weights, err));
    hand_out_experts(config, weights);
    MLAI_TRY(visit_all(config, fill_place, resolver, err));
    if (config->is_embedding_tied) {
        weights->lm_head = weights->embedding;
    }
    return MLA_OK;
}

static mla_status open_into(model_weights *weights, const char *dir,
                            const model_config *config, mla_error *err)
{
    checkpoint set = {0};
    MLAI_TRY(checkpoint_open(weights->store->ledger, dir, &set, err));
    tensor_resolver resolver = {.config = config, .set = &set, .weights = weights};
    mla_status status = resolve(&resolver, err);
    if (status == MLA_OK) {
        weights->store->mapped = set.mapped;
        set.mapped = (mapped_files){0};
    }
    checkpoint_close(&set);
    return status;
}

mla_status model_weights_open(mla_context *context, const char *dir,
                              const model_config *config, model_weights *out,
                              mla_error *err)
{
    mlai_ledger *ledger = mlai_context_ledger(context);
    void *memory = NULL;
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, 1,
                                     sizeof(struct weight_store), "the list of files",
                                     &memory, err));
    model_weights weights = {.store = memory};
    weights.store->ledger = ledger;
    mla_status status = open_into(&weights, dir, config, err);
    if (status != MLA_OK) {
        model_weights_close(&weights);
        return status;
    }
    *out = weights;
    return MLA_OK;
}

void model_weights_close(model_weights *weights)
{
    struct weight_store *store = weights->store;
    if (!store) {
        return;
    }
    mlai_ledger *ledger = store->ledger;
    mapped_files_close(&store->mapped);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     store->num_experts * sizeof *store->experts, store->experts);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     store->num_layers * sizeof *weights->layers, weights->layers);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *store, store);
    *weights = (model_weights){0};
}
