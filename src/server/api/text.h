/* text.h - JSON written by hand into a byte buffer: literals, numbers, escaped strings. The
 * first failure sticks, so that a writer says what it says and asks once at its end. */
#ifndef MLA_SERVER_API_TEXT_H
#define MLA_SERVER_API_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/engine.h"
#include "server/byte_buffer.h"

typedef struct api_text {
    byte_buffer *to;
    size_t start; /* of `to` at birth */
    mla_status status;
    mla_error *err; /* filled with the first failure; may be NULL */
} api_text;

api_text api_text_begin(byte_buffer *to, mla_error *err);
/* What failed, after which nothing of this text is in the buffer. */
mla_status api_text_end(api_text *text);

/* Room for bytes more, where the caller writes itself; NULL: failed. Then api_text_wrote. */
char *api_text_room(api_text *text, size_t bytes);
void api_text_wrote(api_text *text, size_t bytes);

void api_text_bytes(api_text *text, const char *data, size_t bytes);
static inline void api_text_add(api_text *text, const char *literal)
{
    api_text_bytes(text, literal, strlen(literal));
}
void api_text_int(api_text *text, int64_t value);
/* With 9 digits; what JSON has no word for becomes -9999, as clients of logprobs expect. */
void api_text_real(api_text *text, double value);
/* data: UTF-8. Without and with the quotation marks. */
void api_text_escaped(api_text *text, const char *data, size_t bytes);
void api_text_string(api_text *text, const char *string); /* NULL: null */
/* Any bytes, with quotation marks; what is not UTF-8 becomes U+FFFD. */
void api_text_bytes_as_string(api_text *text, const char *data, size_t bytes);

/* The text of ids [num], special tokens too, with quotation marks. */
void api_text_tokens(api_text *text, const tokenizer *words, const int32_t *ids,
                     size_t num);

/* Is it UTF-8, whole characters only? */
bool api_is_text(const char *data, size_t bytes);

/* The most bytes that one byte becomes when it is escaped. */
enum { API_ESCAPED_BYTES = 6 };
/* out: [API_ESCAPED_BYTES * bytes]; returns the end. */
char *api_escape(const char *data, size_t bytes, char *out);

#endif
