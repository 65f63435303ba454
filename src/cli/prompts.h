/* prompts.h - where the prompts of one command come from, and their tokens. */
#ifndef MLA_CLI_PROMPTS_H
#define MLA_CLI_PROMPTS_H

#include "cli/chat_prompt.h"

enum { PROMPTS_MAX = 64 };

typedef struct prompt_source {
    const char *text; /* the prompt itself, or */
    const char *path; /* the file that holds it; "-": standard input; or */
    chat_source chat; /* a conversation, where it has a path */
} prompt_source;

/* Special tokens in the prompt become their ids; BOS goes in front as the tokenizer's
 * add_bos_token says. A conversation is as its template writes it. Every refusal names the prompt. out: empty before; owned,
 * token_list_free. */
mla_status prompt_encode(mla_context *context, const tokenizer *words,
                         const prompt_source *source, token_list *out, mla_error *err);

/* How many new tokens a prompt may get: max_tokens, or what the context leaves where that is
 * 0. A prompt that does not fit with them is refused with both numbers. */
mla_status prompt_room(int64_t num_prompt, int64_t max_tokens, int64_t context_tokens,
                       int64_t *out, mla_error *err);

#endif
