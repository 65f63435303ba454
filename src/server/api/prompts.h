/* prompts.h - what is to be answered, as tokens: the prompts of a completion, or a conversation
 * written as the model's template has it. */
#ifndef MLA_SERVER_API_PROMPTS_H
#define MLA_SERVER_API_PROMPTS_H

#include "server/api/call.h"
#include "server/api/fields.h"
#include "server/api/memory.h"

typedef struct api_prompt {
    const int32_t *ids; /* [num] in encoded, or in the call's memory */
    int32_t num;
    token_list encoded; /* owned: token_list_free */
    const char *text;   /* [bytes] as it was given, in the body; NULL: ids were given */
    size_t bytes;
} api_prompt;

typedef struct api_prompts {
    api_prompt *list; /* [num] in the call's memory */
    int32_t num;
} api_prompts;

/* Prompts of /v1/completions: a string, strings, ids, or arrays of ids. What is there after a
 * failure is freed like a success. max: how many there may be. */
bool api_prompts_read(const api_settings *settings, const api_fields *fields, int32_t max,
                      api_memory *memory, api_prompts *out);
/* The conversation of /v1/chat/completions: one prompt. */
bool api_messages_read(const api_settings *settings, const api_fields *fields,
                       api_memory *memory, api_prompts *out);
void api_prompts_free(api_prompts *prompts); /* the encoded ones */

/* Text that has more tokens than the context, whatever they are, is not even encoded. */
bool api_prompt_may_fit(const api_settings *settings, size_t bytes, const char *param,
                        api_failure *failure);

#endif
