/* text.c - JSON by hand: see text.h. */
#include "server/api/text.h"

#include <math.h>
#include <stdio.h>

#include "base/status.h"

enum { DECIMAL = 10, NUMBER_BYTES = 32, PIECE_BYTES = 64, GROWTH = 3, MAX_HELD = 4 };

api_text api_text_begin(byte_buffer *to, mla_error *err)
{
    return (api_text){.to = to, .start = to->num, .status = MLA_OK, .err = err};
}

mla_status api_text_end(api_text *text)
{
    if (text->status != MLA_OK) {
        text->to->num = text->start;
    }
    return text->status;
}

char *api_text_room(api_text *text, size_t bytes)
{
    byte_buffer *to = text->to;
    if (text->status != MLA_OK) {
        return NULL;
    }
    if (to->capacity - to->num < bytes || !to->data) {
        text->status = byte_buffer_reserve(to, bytes, text->err);
    }
    return text->status == MLA_OK ? to->data + to->num : NULL;
}

void api_text_wrote(api_text *text, size_t bytes)
{
    text->to->num += bytes;
}

void api_text_bytes(api_text *text, const char *data, size_t bytes)
{
    char *out = api_text_room(text, bytes);
    if (out && bytes > 0) {
        memcpy(out, data, bytes);
        api_text_wrote(text, bytes);
    }
}

/* Decimal digits, at least `least` of them, from their end; returns where they begin. */
static char *digits_before(char *end, uint64_t value, int least)
{
    for (; value > 0 || least > 0; least--) {
        *--end = (char)('0' + value % DECIMAL);
        value /= DECIMAL;
    }
    return end;
}

void api_text_int(api_text *text, int64_t value)
{
    char digits[NUMBER_BYTES];
    char *end = digits + sizeof digits;
    uint64_t size = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
    char *at = digits_before(end, size, 1);
    if (value < 0) {
        *--at = '-';
    }
    api_text_bytes(text, at, (size_t)(end - at));
}

/* A value of a size that logprobs have, with 9 digits, in a tenth of the time that snprintf
 * takes: there may be 21 of them a token. Returns where it begins before end; NULL: it is of
 * another size. */
static char *usual_before(char *end, double value)
{
    static const double least = 1e-4;
    static const double most = 9999;
    double size = fabs(value);
    double limit = 1e3; /* for 4 digits before the point and 5 behind it */
    uint64_t unit = 100000;
    int decimals = 5;
    if (!(size >= least && size <= most)) {
        return NULL;
    }
    while (size < limit) {
        limit /= DECIMAL;
        unit *= DECIMAL;
        decimals++;
    }
    uint64_t scaled = (uint64_t)llrint(size * (double)unit);
    uint64_t fraction = scaled % unit;
    for (; fraction > 0 && fraction % DECIMAL == 0; fraction /= DECIMAL) {
        decimals--;
    }
    if (fraction > 0) {
        end = digits_before(end, fraction, decimals);
        *--end = '.';
    }
    end = digits_before(end, scaled / unit, 1);
    if (value < 0) {
        *--end = '-';
    }
    return end;
}

void api_text_real(api_text *text, double value)
{
    static const double nothing = -9999.0;
    char digits[NUMBER_BYTES];
    char *end = digits + sizeof digits;
    char *at = usual_before(end, value);
    if (!at) {
        at = digits;
        end =
            at + snprintf(digits, sizeof digits, "%.9g", isfinite(value) ? value : nothing);
    }
    api_text_bytes(text, at, (size_t)(end - at));
}

/* What a byte becomes; 0: itself, 'u': \u00XX. */
static char short_escape(unsigned char byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return (char)byte;
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return byte < 0x20 ? 'u' : 0;
    }
}

char *api_escape(const char *data, size_t bytes, char *out)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)data[i];
        char escape = short_escape(byte);
        if (!escape) {
            *out++ = data[i];
            continue;
        }
        *out++ = '\\';
        *out++ = escape;
        if (escape == 'u') {
            *out++ = '0';
            *out++ = '0';
            *out++ = hex[byte >> 4];
            *out++ = hex[byte & 15];
        }
    }
    return out;
}

void api_text_escaped(api_text *text, const char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        char *out = api_text_room(text, API_ESCAPED_BYTES * piece);
        if (!out) {
            return;
        }
        api_text_wrote(text, (size_t)(api_escape(data + done, piece, out) - out));
        done += piece;
    }
}

void api_text_string(api_text *text, const char *string)
{
    if (!string) {
        api_text_add(text, "null");
        return;
    }
    api_text_add(text, "\"");
    api_text_escaped(text, string, strlen(string));
    api_text_add(text, "\"");
}

/* Any bytes, as text: a piece at a time, because each may become thrice as many. */
static void feed(api_text *text, detokenizer *state, const char *data, size_t bytes)
{
    char clean[GROWTH * (PIECE_BYTES + MAX_HELD)];
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        size_t num = detokenizer_feed(state, data + done, piece, clean);
        api_text_escaped(text, clean, num);
        done += piece;
    }
}

static void feed_end(api_text *text, detokenizer *state)
{
    char clean[GROWTH];
    api_text_escaped(text, clean, detokenizer_finish(state, clean));
}

void api_text_bytes_as_string(api_text *text, const char *data, size_t bytes)
{
    detokenizer state = {.num_held = 0};
    api_text_add(text, "\"");
    feed(text, &state, data, bytes);
    feed_end(text, &state);
    api_text_add(text, "\"");
}

void api_text_tokens(api_text *text, const tokenizer *words, const int32_t *ids, size_t num)
{
    detokenizer state = {.num_held = 0};
    api_text_add(text, "\"");
    for (size_t i = 0; i < num; i++) {
        size_t bytes = 0;
        const char *piece = tokenizer_bytes_of(words, ids[i], &bytes);
        feed(text, &state, piece, bytes);
    }
    feed_end(text, &state);
    api_text_add(text, "\"");
}

/* What a detokenizer changes is no text. */
bool api_is_text(const char *data, size_t bytes)
{
    detokenizer state = {.num_held = 0};
    char clean[GROWTH * (PIECE_BYTES + MAX_HELD)];
    size_t num = 0; /* that came out, equal to what went in */
    for (size_t done = 0; done < bytes;) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        size_t made = detokenizer_feed(&state, data + done, piece, clean);
        done += piece;
        if (num + made > done || memcmp(clean, data + num, made) != 0) {
            return false;
        }
        num += made;
    }
    return state.num_held == 0;
}
