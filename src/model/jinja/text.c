/* text.c - looking at marked text. */
#include "model/jinja/text.h"

#include <string.h>

#include "model/utf8.h"

enum { SHOWN_BYTES = 60 };

jinja_text jinja_text_of(const char *name)
{
    return (jinja_text){.data = name, .bytes = strlen(name)};
}

static bool is_inside(const char *data, size_t at)
{
    return ((unsigned char)data[at] & 0xc0U) == 0x80U;
}

int jinja_text_shown(jinja_text text)
{
    size_t shown = text.bytes < SHOWN_BYTES ? text.bytes : (size_t)SHOWN_BYTES;
    while (shown > 0 && shown < text.bytes && is_inside(text.data, shown)) {
        shown--;
    }
    return (int)shown;
}

bool jinja_text_is(jinja_text text, const char *name)
{
    return strlen(name) == text.bytes &&
           (text.bytes == 0 || memcmp(text.data, name, text.bytes) == 0);
}

bool jinja_text_equal(jinja_text a, jinja_text b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

int jinja_text_compare(jinja_text a, jinja_text b)
{
    size_t common = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

jinja_text jinja_text_part(jinja_text text, size_t begin, size_t end)
{
    if (begin >= end) {
        return (jinja_text){.data = text.data};
    }
    return (jinja_text){.data = text.data + begin,
                        .bytes = end - begin,
                        .marks = text.marks ? text.marks + begin : NULL,
                        .is_input = text.is_input};
}

size_t jinja_text_find(jinja_text in, jinja_text what, size_t from)
{
    if (from > in.bytes || what.bytes > in.bytes - from) {
        return SIZE_MAX;
    }
    if (what.bytes == 0) {
        return from;
    }
    const char *found = memmem(in.data + from, in.bytes - from, what.data, what.bytes);
    return found ? (size_t)(found - in.data) : SIZE_MAX;
}

size_t jinja_text_find_last(jinja_text in, jinja_text what, size_t end)
{
    if (what.bytes > end) {
        return SIZE_MAX;
    }
    for (size_t at = end - what.bytes + 1; at > 0; at--) {
        if (what.bytes == 0 || memcmp(in.data + at - 1, what.data, what.bytes) == 0) {
            return at - 1;
        }
    }
    return SIZE_MAX;
}

size_t jinja_text_length(jinja_text text)
{
    size_t num = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        num += !is_inside(text.data, i);
    }
    return num;
}

size_t jinja_text_offset(jinja_text text, size_t from, size_t num_points)
{
    size_t at = from;
    while (num_points > 0 && at < text.bytes) {
        do {
            at++;
        } while (at < text.bytes && is_inside(text.data, at));
        num_points--;
    }
    return at;
}

/* Unicode's White_Space, and four separators that Python counts, too. */
static bool is_space(uint32_t code)
{
    return utf8_is_white_space(code) || (code >= 0x1c && code <= 0x1f);
}

size_t jinja_text_space_at(jinja_text text, size_t at)
{
    size_t length = 0;
    return at < text.bytes && is_space(utf8_read(text.data + at, &length)) ? length : 0;
}

size_t jinja_text_space_before(jinja_text text, size_t at)
{
    return at > 0 ? jinja_text_space_at(text, utf8_before(text.data, at)) : 0;
}

jinja_text jinja_text_strip(jinja_text text, bool left, bool right)
{
    size_t begin = 0;
    size_t end = text.bytes;
    for (size_t n = 1; left && n > 0 && begin < end; begin += n) {
        n = jinja_text_space_at(text, begin);
    }
    for (size_t n = 1; right && n > 0 && end > begin; end -= n) {
        n = jinja_text_space_before(text, end);
    }
    return jinja_text_part(text, begin, end);
}
