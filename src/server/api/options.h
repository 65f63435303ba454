/* options.h - what a body asks for beside its prompt: sampling, ends, and the form of the
 * reply. */
#ifndef MLA_SERVER_API_OPTIONS_H
#define MLA_SERVER_API_OPTIONS_H

#include "server/api/call.h"
#include "server/api/fields.h"
#include "server/api/memory.h"

enum { API_MAX_ID_BYTES = 128 };

typedef struct api_options {
    engine_request each; /* of every choice, but for its prompt and its seed */
    int32_t num_choices; /* of a prompt: n */
    uint64_t seed; /* of the first choice, where has_seed; the i-th one has seed + i */
    bool has_seed;
    bool is_stream;
    bool has_usage;         /* a stream ends with a chunk of the usage */
    bool has_running_usage; /* and every chunk has it */
    bool returns_ids;       /* of the prompt and of the answer */
    bool is_echo;           /* the prompt's text comes first */
    const char *request_id; /* in memory; NULL: a random one */
} api_options;

/* What stays (stops, biases, ids) is copied into memory. */
bool api_options_read(const api_settings *settings, api_kind kind, const api_fields *fields,
                      api_memory *memory, api_options *out);

#endif
