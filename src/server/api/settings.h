/* settings.h - what the API needs to know of its server. Filled once before the first request
 * and only read from then on, by every thread. */
#ifndef MLA_SERVER_API_SETTINGS_H
#define MLA_SERVER_API_SETTINGS_H

#include "base/ledger.h"
#include "engine/engine.h"
#include "server/api/metrics.h"

/* What a request gets that does not say otherwise. */
typedef struct api_defaults {
    float temperature, top_p, min_p, repetition_penalty;
    int32_t top_k; /* 0: all */
} api_defaults;

/* OpenAI's (temperature 1, top_p 1, nothing else), and over them what generation_config.json
 * of the model's directory has; a directory without one is no error. */
mla_status api_defaults_read(mlai_ledger *ledger, const char *dir, api_defaults *out,
                             mla_error *err);

/* In bytes; looks at the whole vocabulary. */
size_t api_longest_token(const tokenizer *words);

enum {
    API_MAX_CHOICES = 128, /* of one call: prompts times n */
    API_MAX_MESSAGES = 2048,
    API_MAX_JSON_DEPTH = 64,
};

typedef struct api_settings {
    engine *engine;         /* with words; without a chat template, chat is refused */
    mlai_ledger *ledger;    /* of the engine's context */
    const char *model_name; /* as /v1/models has it: the directory's base name, or
                                --served-name */
    const char *model_path; /* the directory, which a request may name, too; may be NULL */
    const char *version;    /* of the program: /version, and in system_fingerprint */
    int64_t start_seconds;  /* since 1970: "created" of the model */
    api_defaults defaults;
    bool allows_control; /* messages may hold control tokens */
    /* api_longest_token: text of more bytes than whole contexts of such tokens is refused before
     * it is encoded; 0: none is */
    size_t longest_token_bytes;
    size_t max_call_bytes; /* of all mailboxes of one call; 0: 64 MiB */
    size_t max_body_bytes; /* that the transport lets through; 0: unknown */

    int64_t (*now_seconds)(void *user); /* since 1970; NULL: the clock's */
    uint64_t (*entropy)(void *user);    /* seeds and ids; NULL: the kernel's. Any thread */
    /* The engine's thread has put something new into a mailbox: the loop may call
     * api_call_write of the calls it has. Must not block. NULL: nobody waits */
    void (*wake)(void *user);
    void *user;
    api_metrics *metrics;    /* counted into; may be NULL */
    bool is_vllm_compatible; /* /metrics has vLLM's names, too */
} api_settings;

#endif
