/* utf8.h - UTF-8 as the Unicode standard's table 3-7 has it. */
#ifndef MLA_MODEL_UTF8_H
#define MLA_MODEL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum utf8_kind {
    UTF8_VALID,      /* `bytes` bytes are one character */
    UTF8_INVALID,    /* `bytes` bytes are a maximal invalid subpart */
    UTF8_INCOMPLETE, /* all that is there may still become a character */
} utf8_kind;

typedef struct utf8_look {
    utf8_kind kind;
    size_t bytes;
} utf8_look;

/* What stands at the start of text: [bytes], bytes > 0. */
utf8_look utf8_look_at(const unsigned char *text, size_t bytes);

/* The offset of the first byte that is not UTF-8, or `bytes`. */
size_t utf8_first_bad(const char *text, size_t bytes);

/* The character at text, which is valid there; *length: its bytes. */
uint32_t utf8_read(const char *text, size_t *length);

/* The offset where the character before text[at] starts; at > 0. */
size_t utf8_before(const char *text, size_t at);

/* White_Space of Unicode, which is what \s means to the pre-tokenizers. */
bool utf8_is_white_space(uint32_t code);

#endif
