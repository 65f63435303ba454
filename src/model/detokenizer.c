/* detokenizer.c - bytes of tokens become text that is valid at every step. */
#include <string.h>

#include "model/tokenizer.h"
#include "model/utf8.h"

static const char replacement[3] = "\xef\xbf\xbd"; /* U+FFFD */

/* One byte more. Nothing was decided while the bytes held could still become a character;
 * this byte may complete it, break it, or neither. Returns what was written. */
static size_t feed_byte(detokenizer *state, unsigned char byte, char *out)
{
    size_t written = 0;
    state->held[state->num_held++] = byte;
    while (state->num_held > 0) {
        utf8_look look = utf8_look_at(state->held, (size_t)state->num_held);
        if (look.kind == UTF8_INCOMPLETE) {
            break;
        }
        if (look.kind == UTF8_VALID) {
            memcpy(out + written, state->held, look.bytes);
            written += look.bytes;
        } else {
            memcpy(out + written, replacement, sizeof replacement);
            written += sizeof replacement;
        }
        state->num_held -= (int32_t)look.bytes;
        memmove(state->held, state->held + look.bytes, (size_t)state->num_held);
    }
    return written;
}

size_t detokenizer_feed(detokenizer *state, const char *in, size_t bytes, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < bytes; i++) {
        written += feed_byte(state, (unsigned char)in[i], out + written);
    }
    return written;
}

size_t detokenizer_finish(detokenizer *state, char out[3])
{
    if (state->num_held == 0) {
        return 0;
    }
    state->num_held = 0;
    memcpy(out, replacement, sizeof replacement);
    return sizeof replacement;
}
