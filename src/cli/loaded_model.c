/* loaded_model.c - opening, loading, preparing and closing a model: see loaded_model.h. */
#include "cli/loaded_model.h"

#include "base/clock.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/progress_bar.h"

mla_status loaded_model_open(loaded_model *loaded, const model_options *options,
                             mla_error *err)
{
    mla_context_options wanted = MLA_INIT(mla_context_options);
    wanted.backend = MLA_BACKEND_CPU;
    wanted.num_threads = options->num_threads;
    if (!loaded->context) {
        MLAI_TRY(mla_context_create(&wanted, &loaded->context, err));
    }
    return tokenizer_open(loaded->context, options->dir, &loaded->tokenizer, err);
}

mla_status loaded_model_load(loaded_model *loaded, const model_options *options,
                             mla_error *err)
{
    int64_t begin_ns = mlai_now_ns();
    MLAI_TRY(model_load(loaded->context, options->dir, &loaded->model, err));
    loaded->load_ns = mlai_now_ns() - begin_ns;
    return model_add_eos(loaded->model, tokenizer_eos(loaded->tokenizer), err);
}

static void show_progress(void *user, const mla_progress *progress)
{
    const loaded_model_limits *limits = user;
    progress_bar_draw("preparing", progress->num_primed, progress->num_requests);
    if (limits->inside) {
        limits->inside(limits->user);
    }
}

mla_status loaded_model_prepare(loaded_model *loaded, const loaded_model_limits *limits,
                                mla_error *err)
{
    loaded_model_limits kept = *limits;
    engine_options options = kept.engine;
    options.words = loaded->tokenizer;
    options.progress = show_progress;
    options.progress_user = &kept;
    int64_t begin_ns = mlai_now_ns();
    mla_status status = engine_open(loaded->model, &options, &loaded->engine, err);
    loaded->prepare_ns = mlai_now_ns() - begin_ns;
    progress_bar_clear();
    return status;
}

void loaded_model_unload(loaded_model *loaded)
{
    engine_close(&loaded->engine);
    model_unload(&loaded->model);
    tokenizer_close(&loaded->tokenizer);
}

mla_status loaded_model_close(loaded_model *loaded, mla_error *err)
{
    loaded_model_unload(loaded);
    return mla_context_destroy(&loaded->context, err);
}

int loaded_model_end(loaded_model *loaded, mla_status status, const mla_error *err)
{
    mla_error closing = {0};
    mla_status closed = loaded_model_close(loaded, &closing);
    if (status != MLA_OK) {
        return complain(err);
    }
    return closed == MLA_OK ? COMMAND_OK : complain(&closing);
}
