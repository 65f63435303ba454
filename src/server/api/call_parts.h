/* call_parts.h - what a call is made of, for the files that make and write it. */
#ifndef MLA_SERVER_API_CALL_PARTS_H
#define MLA_SERVER_API_CALL_PARTS_H

#include "engine/answer_text.h"
#include "server/api/call.h"
#include "server/api/mailbox.h"
#include "server/api/options.h"
#include "server/api/prompts.h"
#include "server/api/text.h"

/* One answer to one prompt. */
typedef struct api_choice {
    engine_request request;
    api_mailbox mail;
    const api_prompt *prompt;

    /* The loop's */
    answer_text text;
    int64_t num_read;    /* tokens that were made text */
    int64_t text_offset; /* in characters, of the token that is read next */
    int32_t index;
    bool has_begun; /* the role, or the prompt's echo, was written */
    bool has_ended; /* the reason was written */
} api_choice;

struct api_call {
    const api_settings *settings;
    api_kind kind;
    api_memory memory;
    api_options options;
    api_prompts prompts;
    api_choice *choices; /* [num_choices] */
    int32_t num_choices;
    int32_t num_written; /* of them, into a plain reply */
    bool is_submitted, is_done;
    api_status status;
    /* {"id":"...","object":...,"system_fingerprint":"..." of every chunk, and of the reply */
    const char *head;
    size_t head_bytes;
};

/* reply.c and stream.c: what api_call_write does. */
void api_reply_write(api_call *call, api_text *out);
void api_stream_write(api_call *call, api_text *out);

/* head.c: makes call->head. */
mla_status api_head_make(api_call *call, mla_error *err);

/* pieces.c: what both have. */
void api_write_text(api_choice *choice, int64_t until, bool is_end, api_text *out);
void api_write_end(const api_choice *choice, api_text *out); /* "finish_reason":... */
void api_write_ids(const int32_t *ids, int64_t num, api_text *out);

typedef struct api_usage {
    int64_t prompt_tokens, new_tokens, cached_tokens; /* cached: -1: not told */
} api_usage;
void api_write_usage(const api_usage *usage, api_text *out);
api_usage api_usage_of(const api_call *call);

/* logprobs.c: "logprobs" of the tokens [from, until), or null; moves text_offset on. */
void api_write_logprobs(const api_call *call, api_choice *choice, int64_t from,
                        int64_t until, api_text *out);

/* reply.c: did the engine die under it; and its error object. */
bool api_call_has_failed(const api_call *call);
void api_write_failure(api_call *call, api_text *out);

#endif
