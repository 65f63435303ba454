/* chat_prompt.h - a conversation in a file becomes the tokens of a prompt. */
#ifndef MLA_CLI_CHAT_PROMPT_H
#define MLA_CLI_CHAT_PROMPT_H

#include "model/tokenizer.h"
#include "server/byte_buffer.h"

typedef struct chat_source {
    const char *path; /* of {"messages": [...], ...} or [messages]; "-": standard input */
    const char *dir;  /* of the model */
    bool allows_control; /* its texts may hold control tokens */
} chat_source;

/* The model's template is read, used and forgotten. out: empty before; owned,
 * token_list_free. */
mla_status chat_prompt_encode(mla_context *context, const tokenizer *words,
                              const chat_source *source, token_list *out, mla_error *err);

/* The rendered text; out: empty before. */
mla_status chat_prompt_render(mla_context *context, const chat_source *source,
                              byte_buffer *out, mla_error *err);

#endif
