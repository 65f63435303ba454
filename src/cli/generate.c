/* generate.c - `mla generate`: prompts to answers. */
#include <errno.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/generation.h"
#include "cli/generation_output.h"

enum {
    KEY_PROMPT = 0x100,
    KEY_PROMPT_FILE,
    KEY_CHAT,
    KEY_ALLOW_SPECIAL,
    KEY_MAX_TOKENS,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_MIN_P,
    KEY_SEED,
    KEY_DRAFT_TOKENS,
};
#define MAX_TEMPERATURE 100.0

typedef struct generate_options {
    model_options model;
    prompt_source sources[PROMPTS_MAX];
    int32_t num_sources;
    bool allows_control;
    int64_t max_tokens; /* 0: up to the context */
    int32_t draft_tokens;
    sampling_options sampling;
} generate_options;

static const struct argp_option options[] = {
    {"prompt", KEY_PROMPT, "TEXT", 0, "a prompt; several are answered together", 0},
    {"prompt-file", KEY_PROMPT_FILE, "FILE", 0, "a prompt from a file; -: standard input",
     0},
    {"chat", KEY_CHAT, "FILE", 0,
     "a conversation, {\"messages\": [...]}, as the model's template writes it; -: "
     "standard "
     "input",
     0},
    {"allow-special", KEY_ALLOW_SPECIAL, NULL, 0,
     "control tokens in the texts of a conversation are control tokens", 0},
    {"max-tokens", KEY_MAX_TOKENS, "N", 0, "new tokens (default: up to the context)", 0},
    {"temperature", KEY_TEMPERATURE, "X", 0, "0 (default) always takes the likeliest", 0},
    {"top-k", KEY_TOP_K, "N", 0, "sample among the N likeliest; 0: all", 0},
    {"top-p", KEY_TOP_P, "X", 0, "sample among the likeliest that sum to X; 1: all", 0},
    {"min-p", KEY_MIN_P, "X", 0, "leave out what is less than X times the likeliest", 0},
    {"seed", KEY_SEED, "N", 0, "of the random numbers (default 0)", 0},
    {"draft-tokens", KEY_DRAFT_TOKENS, "N", 0,
     "guess up to N tokens a step from the text so far (0 to 7, default 0); changes no "
     "token",
     0},
    {0},
};

static error_t add_source(generate_options *out, prompt_source source)
{
    if (out->num_sources == PROMPTS_MAX) {
        (void)complain_misuse("%d prompts are the most that one command takes",
                              PROMPTS_MAX);
        return EINVAL;
    }
    out->sources[out->num_sources++] = source;
    return 0;
}

static error_t parse_seed(const char *text, uint64_t *out)
{
    int64_t seed = 0;
    error_t error = arguments_integer("--seed", text, 0, INT64_MAX, &seed);
    *out = (uint64_t)seed;
    return error;
}

static error_t parse_value(int key, const char *text, generate_options *out)
{
    sampling_options *sampling = &out->sampling;
    switch (key) {
    case KEY_MAX_TOKENS:
        return arguments_integer("--max-tokens", text, 1, INT32_MAX, &out->max_tokens);
    case KEY_TEMPERATURE:
        return arguments_real("--temperature", text, 0, MAX_TEMPERATURE,
                              &sampling->temperature);
    case KEY_TOP_K:
        return arguments_integer32("--top-k", text, 0, INT32_MAX, &sampling->top_k);
    case KEY_TOP_P:
        return arguments_real("--top-p", text, 0, 1, &sampling->top_p);
    case KEY_MIN_P:
        return arguments_real("--min-p", text, 0, 1, &sampling->min_p);
    case KEY_DRAFT_TOKENS:
        return arguments_integer32("--draft-tokens", text, 0, ENGINE_MAX_DRAFT,
                                   &out->draft_tokens);
    case KEY_SEED:
        return parse_seed(text, &sampling->seed);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t check_complete(generate_options *out, const arguments_slot *slots)
{
    error_t error = arguments_check_filled(slots, 1);
    for (int32_t i = 0; i < out->num_sources; i++) {
        out->sources[i].chat.dir = out->model.dir;
        out->sources[i].chat.allows_control = out->allows_control;
    }
    if (!error && out->num_sources == 0) {
        (void)complain_misuse(
            "no prompt is given; --prompt TEXT, --prompt-file FILE or --chat FILE");
        error = EINVAL;
    }
    return error;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    generate_options *out = state->input;
    const arguments_slot slots[] = {{"MODEL", &out->model.dir}};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &out->model;
        return arguments_begin(state);
    case KEY_PROMPT:
        return add_source(out, (prompt_source){.text = text});
    case KEY_PROMPT_FILE:
        return add_source(out, (prompt_source){.path = text});
    case KEY_CHAT:
        return add_source(out, (prompt_source){.chat = {.path = text}});
    case KEY_ALLOW_SPECIAL:
        out->allows_control = true;
        return 0;
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return check_complete(out, slots);
    default:
        return parse_value(key, text, out);
    }
}

static const struct argp_child children[] = {{&model_options_argp, 0, NULL, 0}, {0}};
static const struct argp generate_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL",
    .doc = "Answers prompts with the model in the directory MODEL.",
    .children = children,
};

static mla_status prepare(generation_batch *batch, const generate_options *wanted,
                          mla_error *err)
{
    loaded_model *loaded = batch->loaded;
    loaded_model_limits limits = {.engine = {.kv_format = wanted->model.kv_format,
                                             .max_requests = wanted->num_sources,
                                             .draft_tokens = wanted->draft_tokens}};
    MLAI_TRY(loaded_model_open(loaded, &wanted->model, err));
    MLAI_TRY(generation_begin(batch, wanted->sources, wanted->num_sources, err));
    MLAI_TRY(loaded_model_load(loaded, &wanted->model, err));
    MLAI_TRY(
        generation_size(batch, wanted->max_tokens, &limits.engine.max_context_tokens, err));
    MLAI_TRY(loaded_model_prepare(loaded, &limits, err));
    return mla_context_freeze(loaded->context, err);
}

static mla_status answer(generation_batch *batch, const generate_options *wanted,
                         mla_error *err)
{
    static memory_snapshot memory;
    MLAI_TRY(prepare(batch, wanted, err));
    MLAI_TRY(generation_run(batch, err));
    if (!wanted->model.is_json) {
        return MLA_OK;
    }
    MLAI_TRY(memory_snapshot_take(batch->loaded->context, "served", NULL, &memory, err));
    return generation_print_json(batch, &memory, err);
}

int command_generate(int argc, char **argv)
{
    static generate_options wanted = {.model = MODEL_OPTIONS_DEFAULT};
    if (!arguments_parse(&generate_argp, argc, argv, &wanted)) {
        return COMMAND_MISUSED;
    }
    loaded_model loaded = {0};
    mla_error error = {0};
    static generation_batch batch;
    batch.loaded = &loaded;
    batch.sampling = wanted.sampling;
    batch.is_streamed = !wanted.model.is_json;
    mla_status status = answer(&batch, &wanted, &error);
    generation_end(&batch);
    int result = loaded_model_end(&loaded, status, &error);
    return result == COMMAND_OK && generation_is_interrupted() ? COMMAND_INTERRUPTED
                                                               : result;
}
