/* serving_options.c - the flags of `mla qualify serving`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/qualify_serving.h"
#include "cli/size_option.h"
#include "engine/request.h"

enum {
    KEY_OUT = 0x100,
    KEY_URL,
    KEY_PROMPTS,
    KEY_PROMPT_TOKENS,
    KEY_ANSWERS,
    KEY_ANSWER_TOKENS,
    KEY_KV_BYTES,
    KEY_MAX_CONTEXT,
    KEY_DRAFT_TOKENS,
    KEY_TIMEOUT,
    LEAST_PROMPT_TOKENS = 64,
    MAX_TOKENS = 1 << 24,
    LEAST_CONTEXT = 64,
};
#define MAX_SECONDS 86400.0

static const struct argp_option options[] = {
    {"out", KEY_OUT, "FILE", 0, "where the receipt goes, as JSON", 0},
    {"url", KEY_URL, "http://HOST:PORT", 0,
     "a server that runs already and nobody else uses (default: one is started)", 0},
    {"prompts", KEY_PROMPTS, "N", 0, "long prompts at once (default 8)", 1},
    {"prompt-tokens", KEY_PROMPT_TOKENS, "N", 0, "of each long prompt (default 1024)", 1},
    {"answers", KEY_ANSWERS, "N", 0, "coding answers beside them (default 3)", 1},
    {"answer-tokens", KEY_ANSWER_TOKENS, "N", 0, "new tokens of each (default 128)", 1},
    {"timeout", KEY_TIMEOUT, "S", 0, "of one part of the load (default 3600)", 1},
    {"kv-bytes", KEY_KV_BYTES, "SIZE", 0,
     "of the started server (default: what the load needs)", 2},
    {"max-context", KEY_MAX_CONTEXT, "N", 0, "of the started server, too", 2},
    {"draft-tokens", KEY_DRAFT_TOKENS, "K", 0, "of the started server, too", 2},
    {0},
};

static error_t parse_number(int key, const char *text, serving_options *out)
{
    switch (key) {
    case KEY_PROMPTS:
        return arguments_integer32("--prompts", text, 1, SERVING_MAX_PROMPTS,
                                   &out->num_prompts);
    case KEY_PROMPT_TOKENS:
        return arguments_integer32("--prompt-tokens", text, LEAST_PROMPT_TOKENS, MAX_TOKENS,
                                   &out->prompt_tokens);
    case KEY_ANSWERS:
        return arguments_integer32("--answers", text, 1, SERVING_MAX_ANSWERS,
                                   &out->num_answers);
    case KEY_ANSWER_TOKENS:
        return arguments_integer32("--answer-tokens", text, 1, MAX_TOKENS,
                                   &out->answer_tokens);
    case KEY_MAX_CONTEXT:
        return arguments_integer("--max-context", text, LEAST_CONTEXT, INT32_MAX,
                                 &out->max_context_tokens);
    case KEY_DRAFT_TOKENS:
        return arguments_integer32("--draft-tokens", text, 0, ENGINE_MAX_DRAFT,
                                   &out->draft_tokens);
    case KEY_KV_BYTES:
        return size_option_parse("--kv-bytes", text, 1, &out->kv_bytes);
    case KEY_TIMEOUT:
        return arguments_real("--timeout", text, 1, MAX_SECONDS, &out->timeout_s);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    serving_options *out = state->input;
    const arguments_slot slots[] = {{"MODEL", &out->model.dir}};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &out->model;
        return arguments_begin(state);
    case KEY_OUT:
        out->out = text;
        return 0;
    case KEY_URL:
        out->url = text;
        return 0;
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return arguments_check_filled(slots, 1);
    default:
        return parse_number(key, text, out);
    }
}

static const struct argp_child children[] = {{&model_options_argp, 0, NULL, 0}, {0}};
static const struct argp serving_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL",
    .doc =
        "Asks a server of the model in the directory MODEL for coding answers and long "
        "prompts at once, and for one prompt more than fits, and watches its ledger and "
        "its "
        "metrics meanwhile. The receipt says what was asked, what came, and what it does "
        "not show.",
    .children = children,
};

/* The command as it was typed, as far as there is room. */
static void keep_command(int argc, char **argv, serving_options *out)
{
    size_t length =
        (size_t)snprintf(out->command, sizeof out->command, "mla qualify serving");
    for (int i = 1; i < argc && length < sizeof out->command; i++) {
        length += (size_t)snprintf(out->command + length, sizeof out->command - length,
                                   " %s", argv[i]);
    }
}

bool serving_options_parse(int argc, char **argv, serving_options *out)
{
    *out = (serving_options){.model = MODEL_OPTIONS_DEFAULT,
                             .num_prompts = 8,
                             .prompt_tokens = 1024,
                             .num_answers = 3,
                             .answer_tokens = 128,
                             .timeout_s = 3600};
    keep_command(argc, argv, out);
    return arguments_parse(&serving_argp, argc, argv, out);
}
