/* generation.h - prompts of one command answered together, and what came of each. */
#ifndef MLA_CLI_GENERATION_H
#define MLA_CLI_GENERATION_H

#include "cli/loaded_model.h"
#include "cli/prompts.h"
#include "cli/token_text.h"

struct generation_batch;
typedef struct generation {
    token_list prompt;
    int64_t max_tokens; /* never 0: what the context leaves, where nothing else is said */
    int32_t *ids;       /* [max_tokens], the first num_ids are there */
    int64_t num_ids;
    token_text text; /* of the ids, special tokens left out */
    size_t num_printed;
    bool is_headed; /* its header, where several answers have one, is printed */
    bool is_done;
    engine_result result;
    struct generation_batch *batch;
} generation;

typedef struct generation_batch {
    loaded_model *loaded;
    generation *items; /* [num] */
    int32_t num;
    sampling_options sampling;
    bool is_streamed;  /* text to standard output as it comes */
    int32_t streaming; /* the item whose text is being printed; those before are done */
    mla_status status; /* what failed while tokens came */
    mla_error error;
} generation_batch;

/* Tokens of all prompts. batch: its loaded model is open, items is NULL. */
mla_status generation_begin(generation_batch *batch, const prompt_source *sources,
                            int32_t num, mla_error *err);
/* The room of each, and memory for it. The model is loaded. *context_tokens: what the
 * longest needs. */
mla_status generation_size(generation_batch *batch, int64_t max_tokens,
                           int64_t *context_tokens, mla_error *err);
/* Runs all to their ends, or until SIGINT: then each has what it got so far. */
mla_status generation_run(generation_batch *batch, mla_error *err);
void generation_end(generation_batch *batch);

bool generation_is_interrupted(void);

#endif
