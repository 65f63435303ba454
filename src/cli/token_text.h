/* token_text.h - tokens become text as they come: valid UTF-8, with special tokens left out
 * or written. */
#ifndef MLA_CLI_TOKEN_TEXT_H
#define MLA_CLI_TOKEN_TEXT_H

#include "model/tokenizer.h"
#include "server/byte_buffer.h"

/* Born as {.bytes = {.context = context}}; released with byte_buffer_free(&bytes). */
typedef struct token_text {
    byte_buffer bytes;
    detokenizer state;
} token_text;

/* Special tokens are left out. */
mla_status token_text_add(token_text *text, const tokenizer *words, int32_t id,
                          mla_error *err);
/* Special tokens are written; an id that is no token is MLA_ERR_ARGUMENT. */
mla_status token_text_add_any(token_text *text, const tokenizer *words, int32_t id,
                              mla_error *err);
/* What an incomplete character at the end becomes. */
mla_status token_text_finish(token_text *text, mla_error *err);

#endif
