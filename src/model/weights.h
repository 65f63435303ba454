/* weights.h - the checkpoint's tensors where the forward pass wants them. The data stays in
 * the mapped file; nothing is copied but what the file stores in another type than the
 * forward pass reads (router bias as bf16 -> f32, for example). */
#ifndef MLA_MODEL_WEIGHTS_H
#define MLA_MODEL_WEIGHTS_H

#include "mla/mla.h"
#include "model/config.h"

/* [num_out][num_in] row-major, as nn.Linear stores it. data NULL: not in this model. */
typedef struct matrix {
    const void *data;
    mla_dtype dtype; /* MLA_BF16 or MLA_F32 */
    int32_t num_out, num_in;
} matrix;

typedef struct vector {
    const void *data;
    mla_dtype dtype; /* MLA_BF16 or MLA_F32 */
    int32_t num;
} vector;

typedef struct mlp_weights {
    matrix gate, up, down;
} mlp_weights;

typedef struct layer_weights {
    vector input_norm;          /* [d] */
    matrix q;                   /* [H*(P+R)][d], where q_lora_rank is 0 */
    matrix q_a;                 /* [Rq][d] */
    vector q_a_bias, q_a_norm;  /* [Rq] */
    matrix q_b;                 /* [H*(P+R)][Rq] */
    matrix kv_a;                /* [D+R][d] */
    vector kv_a_bias;           /* [D+R] */
    vector kv_a_norm;           /* [D] */
    matrix kv_b;                /* [H*(P+V)][D]: per head P rows of W_UK, then V of W_UV */
    matrix o;                   /* [d][H*V] */
    vector o_bias;              /* [d] */
    vector post_attention_norm; /* [d] */
    mlp_weights mlp;            /* dense layers */
    matrix router;              /* [E][d] */
    vector router_bias;         /* [E] e_score_correction_bias, f32 or bf16 as stored */
    mlp_weights *experts;       /* [E], or NULL */
    mlp_weights shared_experts;
} layer_weights;

typedef struct model_weights {
    matrix embedding;           /* [vocab][d] */
    vector norm;                /* [d] */
    matrix lm_head;             /* [vocab][d]; the embedding where tied */
    layer_weights *layers;      /* [num_layers] */
    struct weight_store *store; /* the mapped files and the tables above */
} model_weights;

/* Maps every *.safetensors file of DIR (model.safetensors, or the shards of
 * model.safetensors.index.json) and resolves the tensors of the family's table. Strict both
 * ways: a tensor that is missing, left over, of another shape or of a type that the forward
 * pass does not read is an error that names it. Mapped bytes are booked as weights, host.
 * context: borrowed until close. config: read. out: owned, model_weights_close. */
mla_status model_weights_open(mla_context *context, const char *dir,
                              const model_config *config, model_weights *out,
                              mla_error *err);
void model_weights_close(model_weights *weights); /* all 0 is allowed */

#endif
