/* tokenizer.h - tokenizer.json (byte-level BPE) and tokenizer_config.json. */
#ifndef MLA_MODEL_TOKENIZER_H
#define MLA_MODEL_TOKENIZER_H

#include <stdbool.h>

#include "mla/mla.h"

typedef struct tokenizer tokenizer;

/* context: borrowed until close; memory of class context. out: owned, tokenizer_close. */
mla_status tokenizer_open(mla_context *context, const char *dir, tokenizer **out,
                          mla_error *err);
void tokenizer_close(tokenizer **t);

typedef struct token_list {
    int32_t *ids; /* owned by the list, released with token_list_free */
    size_t num, capacity;
    mla_context *context;
} token_list;
void token_list_free(token_list *list);

typedef enum tokenizer_flags {
    TOKENIZER_PLAIN = 0,
    TOKENIZER_ADD_BOS = 1 << 0,       /* unless the text begins with it */
    TOKENIZER_PARSE_SPECIAL = 1 << 1, /* added tokens in the text become their ids */
} tokenizer_flags;

/* text: read, UTF-8 of `bytes` bytes (NULs allowed); MLA_ERR_ARGUMENT where it is not, with
 * the offset of the first bad byte. out: *out = {0} before; owned, token_list_free. Memory is
 * class server. Thread-safe on one tokenizer. */
mla_status tokenizer_encode(const tokenizer *t, const char *text, size_t bytes,
                            unsigned flags, token_list *out, mla_error *err);

/* The same, but no control token is found where any of its bytes is marked. marks: [bytes], 1:
 * marked; NULL: none is. The text is otherwise one: where no control token is suppressed, the
 * ids are those of tokenizer_encode. A control token is an added token, unless it is not
 * special and is one character or white space only: such are ordinary text. */
mla_status tokenizer_encode_marked(const tokenizer *t, const char *text,
                                   const unsigned char *marks, size_t bytes, unsigned flags,
                                   token_list *out, mla_error *err);

bool tokenizer_adds_bos(const tokenizer *t);      /* add_bos_token */
int32_t tokenizer_vocab_size(const tokenizer *t); /* largest id + 1 */
int32_t tokenizer_bos(const tokenizer *t);        /* -1: none */
int32_t tokenizer_eos(const tokenizer *t);        /* -1: none */

/* The bytes of one token, not NUL-terminated, borrowed until close; *bytes 0 for an id that
 * is none. Special tokens give their text. */
const char *tokenizer_bytes_of(const tokenizer *t, int32_t id, size_t *bytes);
bool tokenizer_is_special(const tokenizer *t, int32_t id);

/* Streaming: bytes in, valid UTF-8 out. An incomplete tail (at most 3 bytes) is held back;
 * each maximal invalid subpart becomes one U+FFFD. No memory but this struct. */
typedef struct detokenizer {
    unsigned char held[4];
    int32_t num_held;
} detokenizer;
/* Each call writes at most 3 * (bytes + num_held) bytes to `out`; returns their number. */
size_t detokenizer_feed(detokenizer *state, const char *in, size_t bytes, char *out);
size_t detokenizer_finish(detokenizer *state, char out[3]);

#endif
