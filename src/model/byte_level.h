/* byte_level.h - how byte-level BPE writes bytes in a tokenizer.json: every byte is a
 * printable character, itself where it is one and U+0100 onwards where not. */
#ifndef MLA_MODEL_BYTE_LEVEL_H
#define MLA_MODEL_BYTE_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

/* text: [num], valid UTF-8. out: [num]. false where some character stands for no byte. */
bool byte_level_decode(const char *text, size_t num, char *out, size_t *num_out);

#endif
