/* utf8.c - one character at a time. */
#include "model/utf8.h"

/* Of a lead byte: how long the character is and the range of its second byte. */
typedef struct lead {
    size_t bytes;
    unsigned char low, high;
} lead;

static lead lead_of(unsigned char byte)
{
    if (byte < 0x80) {
        return (lead){1, 0, 0};
    }
    if (byte < 0xc2 || byte > 0xf4) {
        return (lead){0, 0, 0};
    }
    if (byte < 0xe0) {
        return (lead){2, 0x80, 0xbf};
    }
    if (byte < 0xf0) {
        return (lead){3, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf};
    }
    return (lead){4, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf};
}

utf8_look utf8_look_at(const unsigned char *text, size_t bytes)
{
    lead first = lead_of(text[0]);
    if (first.bytes == 0) {
        return (utf8_look){UTF8_INVALID, 1};
    }
    for (size_t i = 1; i < first.bytes; i++) {
        unsigned char low = i == 1 ? first.low : 0x80;
        unsigned char high = i == 1 ? first.high : 0xbf;
        if (i >= bytes) {
            return (utf8_look){UTF8_INCOMPLETE, i};
        }
        if (text[i] < low || text[i] > high) {
            return (utf8_look){UTF8_INVALID, i};
        }
    }
    return (utf8_look){UTF8_VALID, first.bytes};
}

size_t utf8_first_bad(const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t done = 0;
    while (done < bytes) {
        if (at[done] < 0x80) {
            done++;
            continue;
        }
        utf8_look look = utf8_look_at(at + done, bytes - done);
        if (look.kind != UTF8_VALID) {
            return done;
        }
        done += look.bytes;
    }
    return bytes;
}

uint32_t utf8_read(const char *text, size_t *length)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = lead_of(at[0]).bytes;
    uint32_t code = bytes <= 1 ? at[0] : at[0] & (0x7fU >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        code = code << 6 | (at[i] & 0x3fU);
    }
    *length = bytes > 0 ? bytes : 1;
    return code;
}

size_t utf8_before(const char *text, size_t at)
{
    do {
        at--;
    } while (at > 0 && ((unsigned char)text[at] & 0xc0U) == 0x80U);
    return at;
}

bool utf8_is_white_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}
