/* byte_level.c - from stand-ins back to bytes. */
#include "model/byte_level.h"

#include "model/utf8.h"

static bool is_printable(uint32_t byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
           (byte >= 0xae && byte <= 0xff);
}

/* The bytes that are not printable, in order: 0-0x20, 0x7f-0xa0, 0xad. */
static int byte_of(uint32_t code)
{
    if (code < 0x100) {
        return is_printable(code) ? (int)code : -1;
    }
    uint32_t nth = code - 0x100;
    if (nth <= 0x20) {
        return (int)nth;
    }
    if (nth <= 0x42) {
        return (int)(nth - 0x21 + 0x7f);
    }
    return nth == 0x43 ? 0xad : -1;
}

bool byte_level_decode(const char *text, size_t num, char *out, size_t *num_out)
{
    size_t length;
    size_t written = 0;
    for (size_t at = 0; at < num; at += length) {
        int byte = byte_of(utf8_read(text + at, &length));
        if (byte < 0) {
            return false;
        }
        out[written++] = (char)byte;
    }
    *num_out = written;
    return true;
}
