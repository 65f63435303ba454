/* state.h - a loaded model from the inside: weights, the attention plan and its buffers, and
 * every array that a forward pass writes. */
#ifndef MLA_MODEL_STATE_H
#define MLA_MODEL_STATE_H

#include "attention/context.h"
#include "attention/lane.h"
#include "model/cpu/gemm_run.h"
#include "model/model.h"

enum { ATTEND_ROWS = 16 }; /* query rows of one un-absorbed task */

/* Shape letters: M rows of a pass (at most max_rows), d hidden_size, H heads, P/R/V head
 * widths, D kv_lora_rank, E experts, k experts a token, C MODEL_CHUNK_TOKENS. */
typedef struct activations {
    double *inv_freq; /* [R/2] */
    float *angles;    /* [M][R/2][2] */
    int64_t *slots;   /* [M] where each row's latent goes */
    float *hidden;    /* [M][d] the residual stream */
    float *normed;    /* [M][d] */
    float *q_a;       /* [M][Rq] */
    float *q;         /* [M][H][P+R] */
    float *latent;    /* [M][D+R] */
    float *attended;  /* [M][H][V] */
    float *gate, *up; /* [M][dense or shared width] */

    float *router_logits, *router_scratch; /* [M][E], one row's */
    int32_t *chosen;                       /* [M][k] */
    float *chosen_weights;                 /* [M][k] */
    int32_t *expert_start;                 /* [E+1] into the two below */
    int32_t *pair_token,
        *pair_index;                /* [M*k] by expert: the row, and its place in chosen */
    float *expert_gate, *expert_up; /* [M*k][moe width] by expert */
    float *expert_out;              /* [M*k][d] in the order of chosen */
    gemm *jobs;                     /* [max(H, 2E)] */

    /* absorbed */
    float *query;      /* [B][H][D+R] */
    float *latent_out; /* [B][H][D] */
    float *lse;
    int32_t *block_table, *context_lens, *query_starts;
    float *kv_scale; /* [1] */

    /* un-absorbed, for one block of C cached rows */
    float *rows;       /* [C][D+R] as f32 */
    float *rope_keys;  /* [R][C] */
    float *keys;       /* [H][P+V][C]: a head's keys, then its values */
    float *scores;     /* [threads][ATTEND_ROWS][C] */
    float *row_max;    /* [M][H] */
    float *row_weight; /* [M][H] sum of exp(score - max) */
} activations;

typedef struct layer_cache {
    void *pool; /* [num_pages][MODEL_PAGE_TOKENS] rows */
    mla_binding *binding;
} layer_cache;

struct model {
    mla_context *context;
    const operators *ops;
    mlai_pool *threads;
    model_config config;
    model_weights weights;

    bool is_prepared;
    model_limits limits;
    int32_t max_rows;
    float rope_magnitude;
    mla_plan *plan;
    mla_requirements needs;
    size_t row_bytes;
    layer_cache *layers; /* [num_layers] */
    mlai_lane lane;      /* the workspace of all layers, lent to one step at a time */
    void *arena;
    size_t arena_bytes;
    activations act;
};

/* A pass over num_rows rows, whose tokens, angles and slots are in place. */
typedef struct model_pass {
    model *model;
    int32_t num_rows;
} model_pass;

/* Each job's rows times its weights: y = x W^T. jobs [num]. */
static inline void pass_multiply(const model_pass *pass, gemm *jobs, int32_t num)
{
    gemm_run(pass->model->ops, pass->model->threads, GEMM_NT, jobs, num);
}

static inline int32_t config_head_dim(const model_config *config)
{
    return config->qk_nope_head_dim + config->qk_rope_head_dim;
}

static inline int32_t config_row_dim(const model_config *config)
{
    return config->kv_lora_rank + config->qk_rope_head_dim;
}

/* Gives back what model_prepare took. */
void model_unprepare(model *self);

/* layer.c: what both forms share. */
/* table: [num] page ids, all of which must exist. */
mla_status layer_check_pages(const model *self, const int32_t *table, int64_t num,
                             mla_error *err);
void layer_embed(const model_pass *pass, const int32_t *tokens);
/* hidden -> q and the cache rows of this pass, both rotated. */
mla_status layer_project(const model_pass *pass, int32_t layer, mla_error *err);
/* attended -> hidden, then the MLP. */
void layer_finish(const model_pass *pass, int32_t layer);
/* hidden -> features [rows][num_feature_layers][d], where the limits name this layer (-1: the
 * embedding). features: NULL: none. */
void layer_keep_features(const model_pass *pass, int32_t layer, float *features);
/* Rows [first, first + num) -> logits [num][vocab]. */
void layer_logits(const model_pass *pass, int32_t first, int32_t num, float *logits);

/* experts.c: normed -> added to hidden. */
void experts_run(const model_pass *pass, const layer_weights *weights);
void mlp_run(const model_pass *pass, const mlp_weights *weights);

#endif
