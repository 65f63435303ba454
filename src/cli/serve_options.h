/* serve_options.h - the command line of `mla serve`. */
#ifndef MLA_CLI_SERVE_OPTIONS_H
#define MLA_CLI_SERVE_OPTIONS_H

#include "cli/model_options.h"

typedef struct serve_options {
    model_options model;
    const char *host, *served_name, *key_file, *log_file, *cors_origin;
    int32_t port, max_requests, draft_tokens, max_waiting;
    int32_t max_connections; /* 0: as many as the process may have files */
    int64_t max_context_tokens, default_max_tokens;
    uint64_t
        kv_bytes; /* 0: as few as max_requests contexts need, or a share of what is free */
    uint64_t max_body_bytes, max_server_bytes;
    float read_timeout_s, write_timeout_s, idle_timeout_s, comment_interval_s;
    float shutdown_timeout_s;
    bool has_no_prefix_cache, allows_control, is_vllm_compatible;
} serve_options;

/* false: the command line is wrong, which has been said. */
bool serve_options_parse(int argc, char **argv, serve_options *out);

#endif
