/* model.h - a checkpoint becomes a forward pass: loaded, prepared for some limits, then run
 * from memory taken once. */
#ifndef MLA_MODEL_MODEL_H
#define MLA_MODEL_MODEL_H

#include "model/config.h"
#include "model/weights.h"

enum {
    MODEL_CHUNK_TOKENS = 256, /* prefill's grid of absolute positions */
    MODEL_PAGE_TOKENS = 64,
    MODEL_MAX_STEP_ROWS = 16, /* a sequence's rows in one decode */
};

typedef struct model model;

/* context: borrowed until unload. out: owned, model_unload. */
mla_status model_load(mla_context *context, const char *dir, model **out, mla_error *err);
void model_unload(model **model); /* *self may be NULL */
const model_config *model_config_of(const model *self);
/* The tokenizer's end token ends a text, too. id < 0: none. */
mla_status model_add_eos(model *self, int32_t id, mla_error *err);
mla_context *model_context_of(const model *self);

/* Are all of tokens [num] in the vocabulary? MLA_ERR_ARGUMENT with the first that is not. */
mla_status model_check_tokens(const model *self, const int32_t *tokens, int32_t num,
                              mla_error *err);

typedef struct model_limits {
    mla_kv_format kv_format;
    int32_t max_sequences;      /* of one decode */
    int32_t max_step_rows;      /* of one sequence in one decode; 0: 1 */
    int64_t max_context_tokens; /* of one sequence; <= config.max_positions */
    int64_t num_pages;          /* of MODEL_PAGE_TOKENS tokens, every layer has them */
    const int32_t
        *feature_layers; /* [num_feature_layers] rising; borrowed while prepared */
    int32_t num_feature_layers;
    void (*progress)(void *user, const mla_progress *progress); /* called inside each prime,
                                   while its transient operands are held; NULL: none */
    void *progress_user;
    mla_memory_report
        *estimate; /* NULL, or MLA_INIT: filled before anything is prepared with
                                    what `session`, `plan` and `kv` will take */
} model_limits;

/* Prepares the attention plans (session, publish, close), takes KV pools, activations and
 * bindings. After this nothing allocates. Once a model. */
mla_status model_prepare(model *self, const model_limits *limits, mla_error *err);

/* Un-absorbed form. Positions [first, first + num_tokens) of one sequence lie in one cell of
 * the grid (first / 256 == (first + num_tokens - 1) / 256). The rows of earlier positions
 * are in the cache. logits: [num_tokens][vocab] f32 where is_every_row, [1][vocab] of the last
 * row otherwise, NULL: none. block_table: [ceil((first + num_tokens) / 64)] page ids. */
typedef struct model_chunk {
    const int32_t *tokens; /* [num_tokens] */
    int32_t num_tokens;
    int64_t first_position;
    const int32_t *block_table;
    float *logits;
    bool is_every_row;
    float *features; /* see model_step; NULL: none */
} model_chunk;
mla_status model_prefill(model *self, const model_chunk *chunk, mla_error *err);

/* Absorbed form. A sequence has one row, or several at successive positions, each of which
 * sees those before it: what a drafter proposed, to be verified. A row's bits do not depend on
 * how many there are. */
typedef struct model_step {
    int32_t num_sequences;
    const int32_t *num_rows;            /* [n] 1 to max_step_rows; NULL: 1 of each */
    const int32_t *tokens;              /* [rows] sequence after sequence */
    const int64_t *positions;           /* [n] of each sequence's first row */
    const int32_t *const *block_tables; /* [n] */
    float *logits;                      /* [rows][vocab] f32 */
    float
        *features; /* [rows][num_feature_layers][hidden_size] the residual stream after each
                        of the limits' feature_layers (-1: the embedding); NULL: none */
} model_step;
mla_status model_decode(model *self, const model_step *step, mla_error *err);

#endif
