/* model_options.c - --kv, --threads and --json: see model_options.h. */
#include "cli/model_options.h"

#include <errno.h>

#include "attention/row_layout.h"
#include "cli/complain.h"

enum { KEY_KV = 0x1000, KEY_THREADS, KEY_JSON };

static const struct argp_option options[] = {
    {"kv", KEY_KV, "FORMAT", 0, "KV rows as f32, bf16 (default), fp8 or fp8_g128", 0},
    {"threads", KEY_THREADS, "N", 0, "threads (default: all allowed CPUs)", 0},
    {"json", KEY_JSON, NULL, 0, "print one JSON value", 0},
    {0},
};

static error_t parse_format(const char *text, mla_kv_format *out)
{
    mla_kv_format format = mlai_kv_format_of_name(text);
    if (!format) {
        (void)complain_misuse("--kv '%s' is not f32, bf16, fp8 or fp8_g128", text);
        return EINVAL;
    }
    *out = format;
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    model_options *out = state->input;
    switch (key) {
    case KEY_KV:
        return parse_format(text, &out->kv_format);
    case KEY_THREADS:
        return arguments_integer32("--threads", text, 1, OPTIONS_MAX_THREADS,
                                   &out->num_threads);
    case KEY_JSON:
        out->is_json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp model_options_argp = {.options = options, .parser = parse};
