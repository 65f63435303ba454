/* engine.h - requests become batches. A request waits until its pages and its place are
 * reserved to its end, so nothing that runs is ever preempted; prompts are prefilled piece by
 * piece beside the requests that already write.
 *
 * Threads: engine_step, engine_wait, engine_run and engine_score are called by one thread, the engine's. What
 * says "any thread" may be called beside them. */
#ifndef MLA_ENGINE_ENGINE_H
#define MLA_ENGINE_ENGINE_H

#include "engine/drafter.h"
#include "engine/request.h"
#include "model/chat_template.h"
#include "model/model.h"

typedef struct engine engine;

typedef struct engine_options {
    mla_kv_format kv_format;
    int32_t max_requests;       /* that run together */
    int64_t max_context_tokens; /* of one request; 0: the model's */
    uint64_t kv_bytes;          /* of all pages; 0: max_requests whole contexts */
    int64_t default_max_tokens; /* of a request that gives none; 0: up to the context */
    int32_t draft_tokens;       /* at most ENGINE_MAX_DRAFT a step; 0: no speculation */
    drafter *drafter;           /* borrowed; NULL: ngram_drafter */
    float least_confidence;     /* a draft ends before its first guess that has less */
    bool has_prefix_cache;
    bool scores_texts;         /* engine_score will be called */
    const tokenizer *words;    /* borrowed; NULL: no text, no stop strings */
    const chat_template *chat; /* borrowed; NULL: no conversations */
    void (*progress)(void *user, const mla_progress *progress); /* see model_limits */
    void *progress_user;
    mla_memory_report *estimate; /* see model_limits */
} engine_options;

/* Prepares the model and takes all memory. model: borrowed until close. out: owned,
 * engine_close. The caller may freeze the context afterwards. */
mla_status engine_open(model *target, const engine_options *options, engine **out,
                       mla_error *err);
void engine_close(engine **engine); /* nothing is waiting or running */

/* What the engine was opened with, every default resolved. Any thread. */
typedef struct engine_limits {
    int32_t max_requests, draft_tokens, num_pages, page_tokens, vocab_size;
    int64_t max_context_tokens, default_max_tokens;
    uint64_t page_bytes; /* of all layers */
} engine_limits;
const engine_limits *engine_limits_of(const engine *self);
mla_context *engine_context_of(const engine *self);
const tokenizer *engine_tokenizer_of(const engine *self); /* may be NULL */
const chat_template *engine_chat_of(const engine *self);  /* may be NULL */

/* Would it ever run? Every field is checked: MLA_ERR_ARGUMENT with the value; what the context
 * or the pool can never hold is MLA_ERR_BUFFER_SMALL with required, available, deficit and the
 * largest max_tokens that fits. misfit: filled with the same numbers in that case; may be NULL.
 * Any thread. */
typedef struct engine_misfit {
    bool is_context; /* the context is too short; otherwise the pool is too small */
    int64_t required, available; /* tokens of the context, or pages */
    int64_t largest_max_tokens;  /* that fits with this prompt; 0: not even one */
} engine_misfit;
mla_status engine_check(const engine *self, const engine_request *request,
                        engine_misfit *misfit, mla_error *err);

/* Puts a checked request into the queue. request: borrowed until its on_end was called, and
 * written by the engine alone. Never fails, never waits. Any thread. */
void engine_submit(engine *self, engine_request *request);
/* It ends as ENGINE_CANCELLED at the next step, wherever it is; after its end, nothing
 * happens. The request must still exist. Any thread. */
void engine_cancel(engine *self, engine_request *request);

/* Cancels, ends and admits; then one piece of one prompt and one new token or more of each
 * request that writes. Callbacks are called from here. Allocates nothing. *is_idle: nothing is
 * waiting or running. On failure every request has ended as ENGINE_FAILED and the engine is
 * dead. */
mla_status engine_step(engine *self, bool *is_idle, mla_error *err);
/* Waits until a request is submitted or cancelled, or engine_wake is called. */
void engine_wait(engine *self);
void engine_wake(engine *self); /* any thread */

/* Submits all, and steps until each has ended; results: [num_requests]. A request that
 * engine_check refuses is refused before anything runs, with its number in the text. The
 * requests' own on_end is not called. */
mla_status engine_run(engine *self, engine_request *requests, int32_t num_requests,
                      engine_result *results, mla_error *err);

/* Summed negative log-likelihood in nats of tokens[1..num_tokens) given what is before each.
 * Nothing is waiting or running. */
mla_status engine_score(engine *self, const int32_t *tokens, int32_t num_tokens,
                        double *nll, mla_error *err);

/* What was done since it was opened, and what is held now. Any thread. */
typedef struct engine_stats {
    int32_t num_running, num_waiting;
    int32_t pages_used;   /* referenced by a running request */
    int32_t pages_cached; /* kept for a later prompt, given away when needed */
    int32_t pages_free;
    int32_t pages_reserved;      /* of the cached and free: promised to running requests */
    uint64_t num_steps, step_ns; /* of steps that had work */
    uint64_t prompt_tokens, cached_tokens, new_tokens; /* cached: of the prompts' tokens */
    uint64_t num_ended[ENGINE_NUM_FINISHES];
    uint64_t num_drafts, draft_tokens,
        accepted_tokens;                    /* a draft: one proposal, any length */
    uint64_t accepted_at[ENGINE_MAX_DRAFT]; /* by place in the draft */
    int64_t last_step_rows;
} engine_stats;
void engine_stats_take(engine *self, engine_stats *out);

/* Who holds each page: 0 free, 1 cached, 2 + i: the running request in place i (the first one
 * where several share it). out: [num], the first num pages. Any thread. */
void engine_page_map(engine *self, unsigned char *out, int32_t num);

#endif
