/* loaded_model.h - a model's directory becomes something that answers, step by step, with
 * progress on the terminal: tokenizer, then weights, then the prepared engine. */
#ifndef MLA_CLI_LOADED_MODEL_H
#define MLA_CLI_LOADED_MODEL_H

#include "cli/model_options.h"
#include "engine/engine.h"
#include "model/model.h"
#include "model/tokenizer.h"

typedef struct loaded_model {
    mla_context *context;
    tokenizer *tokenizer;
    model *model;
    engine *engine;
    int64_t load_ns, prepare_ns;
} loaded_model;

/* Each step needs the one before it; loaded: {0} before the first, or with a context that
 * the caller made and that is closed like one made here. All that a step made
 * stays, also where a later one fails, until loaded_model_close. */
mla_status loaded_model_open(loaded_model *loaded, const model_options *options,
                             mla_error *err); /* context and tokenizer */
mla_status loaded_model_load(loaded_model *loaded, const model_options *options,
                             mla_error *err); /* config and weights */

typedef struct loaded_model_limits {
    engine_options engine;      /* all but words and progress, which are filled in */
    void (*inside)(void *user); /* called inside each prime; NULL: none */
    void *user;
} loaded_model_limits;
mla_status loaded_model_prepare(loaded_model *loaded, const loaded_model_limits *limits,
                                mla_error *err); /* the engine; does not freeze */

/* Gives back what there is but the context, which its caller may want to look at. */
void loaded_model_unload(loaded_model *loaded);
/* loaded_model_unload, then the context. MLA_ERR_STATE where something of it still lives. */
mla_status loaded_model_close(loaded_model *loaded, mla_error *err);

/* The end of a subcommand: closes, says what failed (err, or the closing itself) and returns
 * the exit status. */
int loaded_model_end(loaded_model *loaded, mla_status status, const mla_error *err);

#endif
