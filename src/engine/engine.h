/* engine.h - requests become batches: each has pages of its own; prompts are prefilled in
 * chunks, then all running requests decode together. */
#ifndef MLA_ENGINE_ENGINE_H
#define MLA_ENGINE_ENGINE_H

#include "model/model.h"
#include "model/sampling.h"

typedef struct engine engine;

typedef struct engine_options {
    mla_kv_format kv_format;
    int32_t max_requests;       /* that run together */
    int64_t max_context_tokens; /* of one request; 0: the model's */
    void (*progress)(void *user, const mla_progress *progress); /* see model_limits */
    void *progress_user;
    mla_memory_report *estimate; /* see model_limits */
} engine_options;

/* Prepares the model and takes all memory. model: borrowed until close. out: owned,
 * engine_close. The caller may freeze the context afterwards. */
mla_status engine_open(model *target, const engine_options *options, engine **out,
                       mla_error *err);
void engine_close(engine **engine);

typedef struct engine_request {
    const int32_t *prompt; /* [num_prompt], at least 1 */
    int32_t num_prompt;
    int64_t max_tokens; /* 0: up to the context */
    sampling_options sampling;
} engine_request;

typedef enum engine_finish {
    ENGINE_STOP = 1,
    ENGINE_LENGTH,
    ENGINE_CANCELLED
} engine_finish;
typedef struct engine_result {
    engine_finish finish;
    int64_t num_tokens;
    int64_t prefill_ns, decode_ns; /* decode: from the first token to the last */
} engine_result;

/* Called on the engine's thread for each new token, EOS included. false: the request ends
 * here, as ENGINE_CANCELLED; its neighbours go on. */
typedef bool (*engine_token)(void *user, int32_t request, int32_t token);

/* Runs num_requests (any number; max_requests at a time) to their ends. results:
 * [num_requests]. A prompt that with max_tokens does not fit the context is refused before
 * anything runs, with both numbers. Allocates nothing. */
mla_status engine_generate(engine *self, const engine_request *requests,
                           int32_t num_requests, engine_token on_token, void *user,
                           engine_result *results, mla_error *err);

/* Summed negative log-likelihood in nats of tokens[1..num_tokens) given what is before each. */
mla_status engine_score(engine *self, const int32_t *tokens, int32_t num_tokens,
                        double *nll, mla_error *err);

#endif
