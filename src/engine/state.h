/* state.h - an engine from the inside. */
#ifndef MLA_ENGINE_STATE_H
#define MLA_ENGINE_STATE_H

#include "attention/context.h"
#include "engine/engine.h"
#include "model/carve.h"

enum { NO_REQUEST = -1 };

/* One running request. */
typedef struct engine_slot {
    int32_t request;  /* index into the caller's array, or NO_REQUEST */
    int32_t token;    /* the last one, not in the cache yet */
    int64_t length;   /* rows in the cache */
    int64_t num_new;  /* tokens made */
    int64_t max_new;  /* at which it ends by length */
    int64_t first_ns; /* when its first token was there */
    int64_t prefill_ns;
} engine_slot;

struct engine {
    model *model;
    mlai_ledger *ledger;
    mlai_pool *pool;
    int32_t vocab_size, max_requests, table_width;
    int64_t max_context_tokens;
    void *arena;
    size_t arena_bytes;
    engine_slot *slots;             /* [max_requests] */
    int32_t *tables;                /* [max_requests][table_width] page ids */
    float *logits;                  /* [max(max_requests, MODEL_CHUNK_TOKENS)][vocab] */
    sampling_candidate *candidates; /* [vocab] */
    double *row_nll;                /* [MODEL_CHUNK_TOKENS] */
    /* of one decode step, [max_requests] each */
    int32_t *step_slots, *step_tokens;
    int64_t *step_positions;
    const int32_t **step_tables;
};

static inline const int32_t *engine_table(const engine *self, int32_t slot)
{
    return self->tables + (size_t)slot * (size_t)self->table_width;
}

/* Of positions [first, num), how many lie in the cell of `first`. */
int32_t engine_tokens_in_cell(int32_t first, int32_t num);

/* Prefills tokens [0, num) of slot, cell by cell of the grid. last_logits: [vocab]. */
mla_status engine_prefill(engine *self, int32_t slot, const int32_t *tokens, int32_t num,
                          float *last_logits, mla_error *err);

#endif
