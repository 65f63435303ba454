/* api_rig.h - the API on the demo model, its engine stepped by the test itself. Every
 * allocation goes through an allocator that fails on demand. Any failure on the way fails the
 * test. */
#ifndef TEST_API_RIG_H
#define TEST_API_RIG_H

#include "model/model.h"
#include "server/api/call.h"
#include "server/api/simple.h"

typedef struct api_rig {
    mla_context *context;
    model *model;
    tokenizer *words;
    chat_template *chat;
    api_settings settings;
    api_metrics metrics;
    _Atomic int64_t num_wakes;
    _Atomic uint64_t next_number;
    int64_t fail_at;
    /* not beside other threads: */ /* the allocation from now that fails; -1: none */
    bool fails_on;                  /* and all after it */
    uint64_t server_bytes; /* of class server, when it was opened: what it is back at */
} api_rig;

typedef struct api_rig_options {
    int32_t max_requests;       /* 0: 4 */
    int64_t max_context_tokens; /* 0: 512 */
    uint64_t kv_bytes;
    int64_t default_max_tokens; /* 0: 16 */
    bool has_prefix_cache;
    bool lacks_chat;
} api_rig_options;

void api_rig_open(api_rig *self, const api_rig_options *options);
/* Class server is back where it was. */
void api_rig_check(const api_rig *self);
void api_rig_close(api_rig *self);

void api_rig_run(api_rig *self); /* steps until the engine is idle */

/* What the body becomes: the reply's JSON (owned), or the error's. */
json_t *api_rig_reply(api_rig *self, api_kind kind, const char *body, int32_t *status);
/* The same where it must be 200. */
json_t *api_rig_good(api_rig *self, api_kind kind, const char *body);

/* The events of a stream, as an array of their JSON; the last one is [DONE], which is checked
 * and left out, and so is the framing. num_events: NULL, or how many. owned. */
json_t *api_rig_stream(api_rig *self, api_kind kind, const char *body);

/* What is in a buffer, ended by a zero. owned: free. */
char *api_text_of(const byte_buffer *buffer);

/* Values by a path such as "choices.0.message.content"; missing fails the test. */
const json_t *api_at(const json_t *root, const char *path);
const char *api_string_at(const json_t *root, const char *path);
int64_t api_int_at(const json_t *root, const char *path);

/* All of delta.content, or of text, of one choice in the events of a stream. owned: free. */
char *api_joined(const json_t *events, int64_t index);

#endif
