/* serve_options.c - the flags of `mla serve`: see serve_options.h. */
#include "cli/serve_options.h"

#include <errno.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/size_option.h"
#include "engine/request.h"

enum {
    KEY_HOST = 0x100,
    KEY_PORT,
    KEY_KV_BYTES,
    KEY_MAX_CONTEXT,
    KEY_MAX_REQUESTS,
    KEY_DEFAULT_MAX_TOKENS,
    KEY_API_KEY_FILE,
    KEY_DRAFT_TOKENS,
    KEY_METRICS_COMPAT,
    KEY_MAX_WAITING,
    KEY_SERVED_NAME,
    KEY_SHUTDOWN_TIMEOUT,
    KEY_NO_PREFIX_CACHE,
    KEY_ALLOW_SPECIAL,
    KEY_LOG_FILE,
    KEY_CORS_ORIGIN,
    KEY_MAX_CONNECTIONS,
    KEY_MAX_BODY,
    KEY_SERVER_BYTES,
    KEY_READ_TIMEOUT,
    KEY_WRITE_TIMEOUT,
    KEY_IDLE_TIMEOUT,
    KEY_COMMENT_INTERVAL,
};
enum {
    MAX_REQUESTS = 1024,
    LEAST_CONTEXT = 64,
    MAX_WAITING = 1 << 20,
    MAX_FILES = 1 << 20
};
#define MAX_SECONDS 86400.0

static const struct argp_option options[] = {
    {"host", KEY_HOST, "HOST", 0, "where to listen (default 127.0.0.1)", 0},
    {"port", KEY_PORT, "N", 0, "the port (default 8000); 0: the kernel chooses", 0},
    {"served-name", KEY_SERVED_NAME, "NAME", 0,
     "the model's name (default: its directory's)", 0},
    {"api-key-file", KEY_API_KEY_FILE, "FILE", 0, "keys, one a line; one is then needed",
     0},
    {"cors-origin", KEY_CORS_ORIGIN, "ORIGIN", 0,
     "whose pages may ask (default *); none: nobody's", 0},
    {"kv-bytes", KEY_KV_BYTES, "SIZE", 0, "of all pages, such as 512M or 4GiB", 1},
    {"max-context", KEY_MAX_CONTEXT, "N", 0, "tokens of one request (default: the model's)",
     1},
    {"max-requests", KEY_MAX_REQUESTS, "N", 0, "that run together (default 16)", 1},
    {"max-waiting", KEY_MAX_WAITING, "N", 0, "more than these are told 429 (default 1024)",
     1},
    {"default-max-tokens", KEY_DEFAULT_MAX_TOKENS, "N", 0,
     "new tokens of a request that does not say (default 1024)", 1},
    {"draft-tokens", KEY_DRAFT_TOKENS, "K", 0, "tokens guessed ahead, up to 7 (default 0)",
     1},
    {"no-prefix-cache", KEY_NO_PREFIX_CACHE, NULL, 0, "prompts share no pages", 1},
    {"allow-special", KEY_ALLOW_SPECIAL, NULL, 0,
     "control tokens in messages are control tokens", 1},
    {"log-file", KEY_LOG_FILE, "FILE", 0, "a line a request (default: standard error)", 2},
    {"metrics-compat", KEY_METRICS_COMPAT, "vllm", 0, "vLLM's names in /metrics, too", 2},
    {"max-connections", KEY_MAX_CONNECTIONS, "N", 0, "more are told 503 (default 4096)", 2},
    {"max-body", KEY_MAX_BODY, "SIZE", 0, "of one request (default 16M)", 2},
    {"server-bytes", KEY_SERVER_BYTES, "SIZE", 0,
     "of memory for all connections and bodies (default 512M)", 2},
    {"read-timeout", KEY_READ_TIMEOUT, "S", 0, "for a request's head, and its body (30)",
     2},
    {"write-timeout", KEY_WRITE_TIMEOUT, "S", 0, "of a client that reads nothing (30)", 2},
    {"idle-timeout", KEY_IDLE_TIMEOUT, "S", 0, "between requests (300)", 2},
    {"comment-interval", KEY_COMMENT_INTERVAL, "S", 0,
     "between comments in a stream that waits (1)", 2},
    {"shutdown-timeout", KEY_SHUTDOWN_TIMEOUT, "S", 0,
     "for what runs when the server is told to end (30)", 2},
    {0},
};

static error_t parse_compat(const char *text, serve_options *out)
{
    if (strcmp(text, "vllm") != 0) {
        (void)complain_misuse("--metrics-compat '%s' is not vllm", text);
        return EINVAL;
    }
    out->is_vllm_compatible = true;
    return 0;
}

static error_t parse_origin(const char *text, serve_options *out)
{
    if (strpbrk(text, "\r\n")) {
        (void)complain_misuse("--cors-origin '%s' is not one line", text);
        return EINVAL;
    }
    out->cors_origin = strcmp(text, "none") == 0 ? NULL : text;
    return 0;
}

static error_t parse_seconds(int key, const char *text, serve_options *out)
{
    switch (key) {
    case KEY_READ_TIMEOUT:
        return arguments_real("--read-timeout", text, 0.1, MAX_SECONDS,
                              &out->read_timeout_s);
    case KEY_WRITE_TIMEOUT:
        return arguments_real("--write-timeout", text, 0.1, MAX_SECONDS,
                              &out->write_timeout_s);
    case KEY_IDLE_TIMEOUT:
        return arguments_real("--idle-timeout", text, 0.1, MAX_SECONDS,
                              &out->idle_timeout_s);
    case KEY_COMMENT_INTERVAL:
        return arguments_real("--comment-interval", text, 0.1, MAX_SECONDS,
                              &out->comment_interval_s);
    case KEY_SHUTDOWN_TIMEOUT:
        return arguments_real("--shutdown-timeout", text, 0, MAX_SECONDS,
                              &out->shutdown_timeout_s);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_number(int key, const char *text, serve_options *out)
{
    switch (key) {
    case KEY_PORT:
        return arguments_integer32("--port", text, 0, UINT16_MAX, &out->port);
    case KEY_MAX_CONTEXT:
        return arguments_integer("--max-context", text, LEAST_CONTEXT, INT32_MAX,
                                 &out->max_context_tokens);
    case KEY_MAX_REQUESTS:
        return arguments_integer32("--max-requests", text, 1, MAX_REQUESTS,
                                   &out->max_requests);
    case KEY_DEFAULT_MAX_TOKENS:
        return arguments_integer("--default-max-tokens", text, 1, INT32_MAX,
                                 &out->default_max_tokens);
    case KEY_DRAFT_TOKENS:
        return arguments_integer32("--draft-tokens", text, 0, ENGINE_MAX_DRAFT,
                                   &out->draft_tokens);
    case KEY_MAX_WAITING:
        return arguments_integer32("--max-waiting", text, 1, MAX_WAITING,
                                   &out->max_waiting);
    case KEY_MAX_CONNECTIONS:
        return arguments_integer32("--max-connections", text, 1, MAX_FILES,
                                   &out->max_connections);
    case KEY_KV_BYTES:
        return size_option_parse("--kv-bytes", text, 1, &out->kv_bytes);
    case KEY_MAX_BODY:
        return size_option_parse("--max-body", text, 1, &out->max_body_bytes);
    case KEY_SERVER_BYTES:
        return size_option_parse("--server-bytes", text, 1 << 20, &out->max_server_bytes);
    default:
        return parse_seconds(key, text, out);
    }
}

static error_t parse_word(int key, const char *text, serve_options *out)
{
    switch (key) {
    case KEY_HOST:
        out->host = text;
        return 0;
    case KEY_SERVED_NAME:
        out->served_name = text;
        return 0;
    case KEY_API_KEY_FILE:
        out->key_file = text;
        return 0;
    case KEY_LOG_FILE:
        out->log_file = text;
        return 0;
    case KEY_CORS_ORIGIN:
        return parse_origin(text, out);
    case KEY_METRICS_COMPAT:
        return parse_compat(text, out);
    case KEY_NO_PREFIX_CACHE:
        out->has_no_prefix_cache = true;
        return 0;
    case KEY_ALLOW_SPECIAL:
        out->allows_control = true;
        return 0;
    default:
        return parse_number(key, text, out);
    }
}

static error_t parse_end(const serve_options *out, const arguments_slot *slots)
{
    if (out->model.is_json) {
        (void)complain_misuse("--json is not for serve; /ledger is JSON");
        return EINVAL;
    }
    return arguments_check_filled(slots, 1);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    serve_options *out = state->input;
    const arguments_slot slots[] = {{"MODEL", &out->model.dir}};
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &out->model;
        return arguments_begin(state);
    case ARGP_KEY_ARG:
        return arguments_fill(slots, 1, text);
    case ARGP_KEY_END:
        return parse_end(out, slots);
    default:
        return parse_word(key, text, out);
    }
}

static const struct argp_child children[] = {{&model_options_argp, 0, NULL, 0}, {0}};
static const struct argp serve_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "MODEL",
    .doc =
        "Serves the model in the directory MODEL over an OpenAI-compatible API, and a page "
        "at /. SIGTERM or SIGINT lets what runs end; a second one ends at once.",
    .children = children,
};

bool serve_options_parse(int argc, char **argv, serve_options *out)
{
    *out = (serve_options){.model = MODEL_OPTIONS_DEFAULT,
                           .host = "127.0.0.1",
                           .cors_origin = "*",
                           .port = 8000,
                           .max_requests = 16,
                           .max_waiting = 1024,
                           .default_max_tokens = 1024,
                           .max_body_bytes = UINT64_C(16) << 20,
                           .max_server_bytes = UINT64_C(512) << 20,
                           .read_timeout_s = 30,
                           .write_timeout_s = 30,
                           .idle_timeout_s = 300,
                           .comment_interval_s = 1,
                           .shutdown_timeout_s = 30};
    return arguments_parse(&serve_argp, argc, argv, out);
}
