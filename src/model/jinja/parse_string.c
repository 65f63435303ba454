/* parse_string.c - the escapes of a string, as Python reads them. */
#include "model/jinja/parser.h"

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t write_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6) {
        out[i] = (char)(0x80U | (code & 0x3fU));
    }
    out[0] = (char)((0xf00U >> bytes & 0xf0U) | code);
    return bytes;
}

/* \xHH, \uHHHH and \UHHHHHHHH at text[at], the letter. */
static mla_status hex_escape(jinja_parser *parser, jinja_text text, size_t *at,
                             uint32_t *out, mla_error *err)
{
    char letter = text.data[*at];
    size_t num = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    *out = 0;
    for (size_t i = 1; i <= num; i++) {
        int digit = *at + i < text.bytes ? hex_value(text.data[*at + i]) : -1;
        MLAI_CHECK(digit >= 0, MLA_ERR_CORRUPT,
                   "line %d: \\%c needs %zu hexadecimal digits in %.*s", parser->now.line,
                   letter, num, JINJA_SHOWN(parser->now.text));
        *out = *out << 4 | (uint32_t)digit;
    }
    MLAI_CHECK(*out <= 0x10ffff && (*out < 0xd800 || *out > 0xdfff), MLA_ERR_UNSUPPORTED,
               "line %d: \\%c%x is no character in %.*s", parser->now.line, letter, *out,
               JINJA_SHOWN(parser->now.text));
    *at += num + 1;
    return MLA_OK;
}

static uint32_t octal_escape(jinja_text text, size_t *at)
{
    uint32_t code = 0;
    for (size_t end = *at + 3;
         *at < end && *at < text.bytes && text.data[*at] >= '0' && text.data[*at] <= '7';
         (*at)++) {
        code = code * 8 + (uint32_t)(text.data[*at] - '0');
    }
    return code;
}

/* A letter that stands for one character; -1: no such letter. */
static int letter_escape(char letter)
{
    static const char letters[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if (letters[i] == letter) {
            return letters[i + 1];
        }
    }
    return -1;
}

/* The escape whose backslash is at text[*at]; moves on behind it. */
static mla_status escape(jinja_parser *parser, jinja_text text, size_t *at,
                         jinja_builder *to, mla_error *err)
{
    char bytes[4] = {'\\'};
    uint32_t code = '\\';
    char letter = text.data[*at + 1];
    int simple = letter_escape(letter);
    *at += 1;
    if (letter == '\n') {
        *at += 1;
        return MLA_OK;
    }
    MLAI_CHECK(letter != 'N', MLA_ERR_UNSUPPORTED,
               "line %d: the escape \\N is not supported in %.*s", parser->now.line,
               JINJA_SHOWN(parser->now.text));
    if (simple >= 0) {
        code = (uint32_t)simple;
        *at += 1;
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
        MLAI_TRY(hex_escape(parser, text, at, &code, err));
    } else if (letter >= '0' && letter <= '7') {
        code = octal_escape(text, at);
    }
    size_t num = write_utf8(code, bytes); /* any other letter keeps its backslash */
    return jinja_builder_add(to, (jinja_text){.data = bytes, .bytes = num}, err);
}

mla_status jinja_parse_string(jinja_parser *parser, jinja_text *out, mla_error *err)
{
    jinja_text text = jinja_text_part(parser->now.text, 1, parser->now.text.bytes - 1);
    jinja_builder built = {.memory = parser->memory};
    size_t at = 0;
    while (at < text.bytes) {
        size_t next = jinja_text_find(text, JINJA_TEXT("\\"), at);
        next = next < text.bytes ? next : text.bytes;
        MLAI_TRY(jinja_builder_add(&built, jinja_text_part(text, at, next), err));
        at = next;
        MLAI_TRY(at < text.bytes ? escape(parser, text, &at, &built, err) : MLA_OK);
    }
    *out = jinja_builder_text(&built);
    return MLA_OK;
}
