/* score.c - `mla score`: how likely a model finds a text, in windows that begin with BOS. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/progress_bar.h"
#include "cli/text_file.h"
#include "server/memory_snapshot.h"

enum { KEY_WINDOW = 0x100, KEY_MAX_WINDOWS };
enum { DEFAULT_WINDOW = 1023, ALIGN_BYTES = 64 };

typedef struct score_options {
    model_options model;
    const char *path;
    int64_t window, max_windows;
} score_options;

typedef struct score_run {
    loaded_model loaded;
    token_list text; /* all of it, no special tokens */
    int32_t *window; /* [1 + window]: BOS, then the tokens */
    size_t num_scored;
    double nll;
} score_run;

static const struct argp_option options[] = {
    {"window", KEY_WINDOW, "N", 0, "tokens a window, BOS apart (default 1023)", 0},
    {"max-windows", KEY_MAX_WINDOWS, "N", 0, "stop after N windows (default: all)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    score_options *out = state->input;
    const arguments_slot slots[] = {{"MODEL", &out->model.dir}, {"FILE", &out->path}};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &out->model;
        return arguments_begin(state);
    case KEY_WINDOW:
        return arguments_integer("--window", text, 1, INT32_MAX - 1, &out->window);
    case KEY_MAX_WINDOWS:
        return arguments_integer("--max-windows", text, 1, INT32_MAX, &out->max_windows);
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 2, text);
    case ARGP_KEY_END:
        return arguments_check_filled(slots, 2);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&model_options_argp, 0, NULL, 0}, {0}};
static const struct argp score_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL FILE",
    .doc = "Sums the negative log-likelihood, in nats, of every token of FILE (-: standard "
           "input), cut into windows with BOS before each.",
    .children = children,
};

static mla_status read_text(score_run *run, const char *path, mla_error *err)
{
    byte_buffer file = {.context = run->loaded.context};
    mla_status status = text_file_read(path, &file, err);
    if (status == MLA_OK) {
        status = tokenizer_encode(run->loaded.tokenizer, file.data, file.num,
                                  TOKENIZER_PLAIN, &run->text, err);
    }
    byte_buffer_free(&file);
    MLAI_TRY(status);
    MLAI_CHECK(run->text.num > 0, MLA_ERR_ARGUMENT, "%s has no tokens to score", path);
    return MLA_OK;
}

static mla_status check_window(const score_run *run, int64_t window, mla_error *err)
{
    int64_t holds = model_config_of(run->loaded.model)->max_positions;
    MLAI_CHECK(window + 1 <= holds, MLA_ERR_ARGUMENT,
               "a window of %lld tokens after BOS needs %lld, which the model's context of "
               "%lld does not hold",
               (long long)window, (long long)window + 1, (long long)holds);
    MLAI_CHECK(tokenizer_bos(run->loaded.tokenizer) >= 0, MLA_ERR_UNSUPPORTED,
               "the model has no BOS token to put before a window");
    return MLA_OK;
}

static mla_status prepare(score_run *run, const score_options *wanted, mla_error *err)
{
    loaded_model *loaded = &run->loaded;
    loaded_model_limits limits = {.engine = {.kv_format = wanted->model.kv_format,
                                             .max_requests = 1,
                                             .max_context_tokens = wanted->window + 1,
                                             .scores_texts = true}};
    void *window = NULL;
    MLAI_TRY(loaded_model_open(loaded, &wanted->model, err));
    MLAI_TRY(read_text(run, wanted->path, err));
    MLAI_TRY(loaded_model_load(loaded, &wanted->model, err));
    MLAI_TRY(check_window(run, wanted->window, err));
    MLAI_TRY(mla_memory_take(loaded->context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                             (size_t)(wanted->window + 1) * sizeof *run->window,
                             ALIGN_BYTES, &window, err));
    run->window = window;
    run->window[0] = tokenizer_bos(loaded->tokenizer);
    MLAI_TRY(loaded_model_prepare(loaded, &limits, err));
    return mla_context_freeze(loaded->context, err);
}

static double perplexity_of(const score_run *run)
{
    return exp(run->nll / (double)run->num_scored);
}

static mla_status score_windows(score_run *run, const score_options *wanted, mla_error *err)
{
    size_t width = (size_t)wanted->window;
    size_t num_windows = (run->text.num + width - 1) / width;
    if (wanted->max_windows > 0 && (size_t)wanted->max_windows < num_windows) {
        num_windows = (size_t)wanted->max_windows;
    }
    for (size_t i = 0; i < num_windows; i++) {
        size_t left = run->text.num - i * width;
        size_t num = left < width ? left : width;
        double nll = 0;
        progress_bar_draw("scoring", (int64_t)i, (int64_t)num_windows);
        memcpy(run->window + 1, run->text.ids + i * width, num * sizeof *run->window);
        MLAI_TRY(
            engine_score(run->loaded.engine, run->window, (int32_t)num + 1, &nll, err));
        run->num_scored += num;
        run->nll += nll;
    }
    progress_bar_clear();
    MLAI_CHECK(isfinite(perplexity_of(run)), MLA_ERR_CORRUPT,
               "the model finds %zu tokens so unlikely (%g nats) that it must be broken",
               run->num_scored, run->nll);
    return MLA_OK;
}

static mla_status print_json(const score_run *run, mla_error *err)
{
    static memory_snapshot memory;
    MLAI_TRY(memory_snapshot_take(run->loaded.context, "served", NULL, &memory, err));
    json_scope before = json_output_begin(run->loaded.context);
    json_t *answer = json_pack(
        "{s:I, s:f, s:f, s:o}", "tokens", (json_int_t)run->num_scored, "nll", run->nll,
        "perplexity", perplexity_of(run), "memory", memory_snapshot_classes(&memory));
    mla_status status = json_output_print(answer, false, err);
    json_scope_leave(before);
    return status;
}

static mla_status score(score_run *run, const score_options *wanted, mla_error *err)
{
    MLAI_TRY(prepare(run, wanted, err));
    MLAI_TRY(score_windows(run, wanted, err));
    if (wanted->model.is_json) {
        return print_json(run, err);
    }
    (void)printf("tokens      %zu\nnll         %.4f\nperplexity  %.6f\n", run->num_scored,
                 run->nll, perplexity_of(run));
    return MLA_OK;
}

int command_score(int argc, char **argv)
{
    score_options wanted = {.model = MODEL_OPTIONS_DEFAULT, .window = DEFAULT_WINDOW};
    if (!arguments_parse(&score_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    score_run run = {0};
    mla_error error = {0};
    mla_status status = score(&run, &wanted, &error);
    progress_bar_clear();
    token_list_free(&run.text);
    if (run.window) {
        mla_memory_give(run.loaded.context, MLA_SPACE_HOST, MLA_FOR_SERVER,
                        (size_t)(wanted.window + 1) * sizeof *run.window, run.window);
    }
    return loaded_model_end(&run.loaded, status, &error);
}
