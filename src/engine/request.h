/* request.h - what is asked of the engine, and what it says while it answers. */
#ifndef MLA_ENGINE_REQUEST_H
#define MLA_ENGINE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/sampling.h"

enum {
    ENGINE_MAX_DRAFT = 7,
    ENGINE_MAX_LOGPROBS = 20,
    ENGINE_MAX_STOPS = 16,
    ENGINE_MAX_STOP_BYTES = 512,
    ENGINE_MAX_STOP_IDS = 128,
    ENGINE_MAX_BIASES = 1024,
    ENGINE_MAX_PRIORITY = 1000, /* either side of 0 */
};

typedef enum engine_finish {
    ENGINE_STOP = 1, /* an end token, a stop id or a stop string */
    ENGINE_LENGTH,   /* max_tokens */
    ENGINE_CANCELLED,
    ENGINE_FAILED, /* the engine died */
    ENGINE_NUM_FINISHES,
} engine_finish;

typedef struct engine_logprob {
    int32_t id;
    float logprob; /* natural, of the model's own distribution: before bias, penalties,
                      temperature */
} engine_logprob;

/* One new token; its text: answer_text.h. */
typedef struct engine_event {
    int32_t token;
    bool is_end;               /* an end token or stop id, which ends the request */
    int64_t index;             /* 0: the first new token */
    float logprob;             /* of the token; where wants_logprobs */
    const engine_logprob *top; /* [num_top] likeliest first; during the call */
    int32_t num_top;
} engine_event;

typedef struct engine_result {
    engine_finish finish;
    int32_t stop_id;     /* the end token or stop id that ended it, or -1 */
    int32_t stop_string; /* the index into stops, or -1 */
    int64_t num_tokens;  /* new ones, an end token included */
    int64_t num_cached;  /* of the prompt's tokens, found in the prefix cache */
    int64_t queued_ns;   /* from submit to its place */
    int64_t prefill_ns;  /* from there to the first token */
    int64_t decode_ns;   /* from the first token to the last */
} engine_result;

typedef struct engine_text {
    const char *data; /* UTF-8, not terminated */
    size_t bytes;     /* 1 to ENGINE_MAX_STOP_BYTES */
} engine_text;

typedef struct engine_bias {
    int32_t id;
    float bias; /* added to the logit; -INFINITY: never */
} engine_bias;

/* As vLLM has them: repetition divides (or, below 0, multiplies) the logit of each token of the
 * prompt and the answer; presence and frequency are taken off those of the answer, once and by
 * count. */
typedef struct engine_penalties {
    float repetition; /* above 0; 1 (or 0): none */
    float presence, frequency;
} engine_penalties;

typedef struct engine_request engine_request;
struct engine_request {
    const int32_t *prompt;     /* [num_prompt], at least 1 */
    const engine_bias *biases; /* [num_biases] */
    const int32_t *stop_ids;   /* [num_stop_ids] their text is left out */
    const engine_text *stops;  /* [num_stops] */
    int32_t num_prompt, num_biases, num_stop_ids, num_stops;
    int64_t max_tokens;  /* 0: the engine's default, as far as the context goes */
    int64_t min_tokens;  /* before these nothing but cancelling ends it */
    uint64_t cache_salt; /* only requests with the same salt share cached pages */
    sampling_options sampling;
    engine_penalties penalties;
    int32_t priority; /* lower runs sooner; a step is worth 64 places in the queue, so that
                         nothing waits for ever */
    int32_t num_top_logprobs; /* beside the token's own; at most ENGINE_MAX_LOGPROBS */
    bool wants_logprobs;
    bool ignores_eos;
    bool keeps_stop;    /* the text has the stop string or the text of the stop id, too */
    bool keeps_special; /* the text has special tokens, too */

    /* The engine's own; {0} at submit. */
    atomic_bool is_cancelled;
    int32_t num_overtaken;
    int64_t submit_ns;
    int64_t place; /* in the queue, priority counted in */
    engine_request *next;
    engine_result *result; /* of engine_run, with the next one */
    int32_t *num_left;

    /* Called on the engine's thread. on_token may be NULL; false cancels the request. After
     * on_end the engine knows the request no more. */
    bool (*on_token)(engine_request *self, const engine_event *event);
    void (*on_end)(engine_request *self, const engine_result *result);
    void *user;
};

#endif
