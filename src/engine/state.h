/* state.h - an engine from the inside. */
#ifndef MLA_ENGINE_STATE_H
#define MLA_ENGINE_STATE_H

#include <pthread.h>

#include "attention/context.h"
#include "engine/answer_text.h"
#include "engine/engine.h"
#include "engine/pages.h"
#include "model/carve.h"

/* The place of one running request. */
typedef struct engine_slot {
    engine_request *request; /* NULL: nobody runs here */
    int32_t *tokens;         /* [max_context_tokens] the prompt, then the answer */
    int32_t *table;          /* [table_width] its pages */
    uint32_t *counts;        /* [vocab] see logits.c; all 0 between requests */
    int32_t num_pages;       /* in the table */
    int32_t num_reserved;    /* still to be taken */
    int64_t length;          /* rows in the cache */
    int64_t num_cached;      /* of these, found there */
    int64_t num_new, max_new;
    page_key key; /* of the first num_keyed pages */
    int32_t num_keyed;
    int64_t prefill_turn; /* the least one has the next piece: see prefill.c */
    int64_t start_ns, first_ns, last_ns;
    answer_text text;
} engine_slot;

struct engine {
    model *model;
    mlai_ledger *ledger;
    mlai_pool *pool;
    engine_limits limits;
    engine_options options;
    drafter ngram, *drafter; /* NULL: no speculation */
    int32_t vocab_size, table_width, step_rows, logit_rows;
    size_t feature_width; /* of a row */
    uint64_t secret;
    void *arena;
    size_t arena_bytes;

    /* from any thread */
    pthread_mutex_t lock;
    pthread_cond_t news;
    engine_request *inbox, **inbox_end; /* submitted, in order */
    bool has_news;
    engine_stats shown; /* what engine_stats_take gives */

    /* the engine's thread's */
    bool is_dead;
    page_pool pages;
    engine_slot *slots;   /* [max_requests] */
    engine_request *line; /* waiting, by place */
    int64_t num_arrived, prefill_now;
    int64_t piece_token_ns, decode_ns; /* of the last piece and the last step */
    engine_stats stats;
    float *logits;                  /* [logit_rows][vocab] */
    float *features;                /* [max_rows][feature_width] */
    float *raw_logits;              /* [vocab] one row as the model made it */
    sampling_candidate *candidates; /* [vocab] */
    engine_logprob *top;            /* [ENGINE_MAX_LOGPROBS] */
    char *text;                     /* of one token with what was held back */
    size_t text_bytes;
    double *row_nll; /* [logit_rows] */

    /* of one step: n sequences, their rows one after another */
    int32_t *step_slots, *step_rows_of; /* [max_requests] */
    int64_t *step_positions;            /* [max_requests] */
    const int32_t **step_tables;        /* [max_requests] */
    draft *drafts;                      /* [max_requests] */
    int32_t *step_tokens;               /* [max_requests * step_rows] */
};

static inline bool slot_is_prefilling(const engine_slot *slot)
{
    return slot->request && slot->num_new == 0;
}

static inline bool slot_is_writing(const engine_slot *slot)
{
    return slot->request && slot->num_new > 0;
}

static inline int32_t slot_place(const engine *self, const engine_slot *slot)
{
    return (int32_t)(slot - self->slots);
}

/* slots.c */
/* Pages that a request of num_prompt and num_new tokens fills: the last token's row is never
 * written. */
int64_t pages_needed(int64_t num_prompt, int64_t num_new);
int64_t request_max_new(const engine *self, const engine_request *request);
bool slot_begin(engine *self, engine_slot *slot, engine_request *request);
/* Takes pages of the reservation until `length` rows have one each. */
void slot_grow(engine *self, engine_slot *slot, int64_t length);
void slot_give_pages(engine *self, engine_slot *slot);
void slot_end(engine *self, engine_slot *slot, engine_finish how, int32_t stop_id);
/* A request that never had a place. */
void request_end(engine *self, engine_request *request, engine_finish how);

/* queue.c: the inbox into the line, what was cancelled out of everywhere, the line into slots. */
void queue_receive(engine *self);
void queue_drop_cancelled(engine *self);
void queue_admit(engine *self);
void queue_end_all(engine *self, engine_finish how);

/* prefill.c: a piece of one prompt, if there is one to prefill. */
int32_t engine_tokens_in_cell(int64_t first, int64_t num);
mla_status prefill_piece(engine *self, bool *has_worked, mla_error *err);

/* decode.c: a step of all requests that write. */
mla_status decode_step(engine *self, bool *has_worked, mla_error *err);

/* next_token.c: the next token of a slot out of its logits [vocab], which are changed. The
 * request may end. */
int32_t take_token(engine *self, engine_slot *slot, float *logits);

/* step.c: the numbers of now become those that other threads see. */
void engine_show(engine *self);

/* logits.c: what a request asks for, done to its logits. */
void logits_shape(const engine *self, const engine_slot *slot, float *logits);
void logits_count(engine_slot *slot, int32_t token);
void logits_begin(engine_slot *slot); /* counts the prompt */
void logits_end(engine_slot *slot);   /* counts back to 0 */

/* logprobs.c: the event's logprob and top, from raw_logits. */
void logprobs_fill(engine *self, int32_t num_top, engine_event *event);

#endif
