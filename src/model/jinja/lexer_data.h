/* lexer_data.h - the parts of the lexer that know of white space round tags. */
#ifndef MLA_MODEL_JINJA_LEXER_DATA_H
#define MLA_MODEL_JINJA_LEXER_DATA_H

#include "model/jinja/lexer.h"

/* Moves on to `end`, counting lines. */
void jinja_lexer_move(jinja_lexer *lexer, size_t end);

/* Outside of tags: the text up to the next tag, then its beginning. Comments and raw blocks
 * are gone, or text. */
mla_status jinja_lexer_data(jinja_lexer *lexer, jinja_token *out, mla_error *err);

/* Whether the tag that we are in ends here; then *out is its end. */
bool jinja_lexer_ends(jinja_lexer *lexer, jinja_token *out);

#endif
