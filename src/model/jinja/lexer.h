/* lexer.h - a template's source as tokens, one at a time: text between tags (with white
 * space taken away as trim_blocks, lstrip_blocks, - and + say), and what is in the tags. */
#ifndef MLA_MODEL_JINJA_LEXER_H
#define MLA_MODEL_JINJA_LEXER_H

#include "model/jinja/text.h"

typedef enum jinja_token_kind {
    JINJA_END,
    JINJA_DATA,
    JINJA_BLOCK_BEGIN,
    JINJA_BLOCK_END,
    JINJA_PRINT_BEGIN,
    JINJA_PRINT_END,
    JINJA_NAME,
    JINJA_STRING, /* text: with its quotes */
    JINJA_INTEGER,
    JINJA_REAL,
    JINJA_OPERATOR,
} jinja_token_kind;

typedef struct jinja_token {
    jinja_token_kind kind;
    int32_t line;
    jinja_text text; /* of the source */
} jinja_token;

typedef struct jinja_lexer {
    jinja_text source; /* newlines are \n, and the last one is cut off */
    size_t at;
    int32_t line;
    jinja_token_kind inside; /* the tag that we are in, JINJA_DATA outside of any */
    bool begins_tag;         /* the text before the tag at `at` was given */
    bool begins_line;        /* the last token ended with a newline */
    int32_t num_open;
    char open[64]; /* the brackets that are open, so that }} may close two of them */
} jinja_lexer;

/* source: copied. */
mla_status jinja_lexer_begin(jinja_memory *memory, jinja_text source, jinja_lexer *out,
                             mla_error *err);
mla_status jinja_lexer_next(jinja_lexer *lexer, jinja_token *out, mla_error *err);

#endif
