/* print.c - str() and repr(), as Python has them. */
#include <inttypes.h>
#include <stdio.h>

#include "model/jinja/value.h"
#include "model/utf8.h"

static mla_status add(jinja_builder *to, const char *text, mla_error *err)
{
    return jinja_builder_add(to, jinja_text_of(text), err);
}

/* What repr escapes beyond ASCII: controls, formats, separators, private use and
 * non-characters. Code points that Unicode has not assigned yet are left as they are. */
static bool is_printable(uint32_t code)
{
    static const uint32_t hidden[][2] = {
        {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},      {0x61c, 0x61c},
        {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},      {0x8e2, 0x8e2},
        {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},    {0x2028, 0x202f},
        {0x205f, 0x2064},   {0x2066, 0x206f},   {0x3000, 0x3000},    {0xd800, 0xf8ff},
        {0xfdd0, 0xfdef},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},    {0x110bd, 0x110bd},
        {0x110cd, 0x110cd}, {0x13430, 0x13438}, {0x1bca0, 0x1bca3},  {0x1d173, 0x1d17a},
        {0xe0001, 0xe0001}, {0xe0020, 0xe007f}, {0xefffe, 0x10ffff},
    };
    bool is_hidden = code < 0x20 || (code & 0xfffeU) == 0xfffeU;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        is_hidden = is_hidden || (code >= hidden[i][0] && code <= hidden[i][1]);
    }
    return !is_hidden;
}

static int escape(uint32_t code, char quote, char *out, size_t bytes)
{
    static const char names[] = {['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (code == '\\' || code == (unsigned char)quote) {
        return snprintf(out, bytes, "\\%c", (int)code);
    }
    if (code < sizeof names && names[code]) {
        return snprintf(out, bytes, "\\%c", names[code]);
    }
    if (code < 0x100) {
        return snprintf(out, bytes, "\\x%02" PRIx32, code);
    }
    return snprintf(out, bytes, code < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, code);
}

static mla_status repr_text(jinja_builder *to, jinja_text text, mla_error *err)
{
    bool has_single = jinja_text_find(text, JINJA_TEXT("'"), 0) != SIZE_MAX;
    bool has_double = jinja_text_find(text, JINJA_TEXT("\""), 0) != SIZE_MAX;
    char quote = has_single && !has_double ? '"' : '\'';
    size_t done = 0; /* up to here it is out */
    MLAI_TRY(jinja_builder_add(to, (jinja_text){.data = &quote, .bytes = 1}, err));
    for (size_t at = 0, length; at < text.bytes; at += length) {
        uint32_t code = utf8_read(text.data + at, &length);
        if (is_printable(code) && code != '\\' && code != (unsigned char)quote) {
            continue;
        }
        char escaped[12];
        int num = escape(code, quote, escaped, sizeof escaped);
        MLAI_TRY(jinja_builder_add(to, jinja_text_part(text, done, at), err));
        MLAI_TRY(jinja_builder_add_like(to, escaped, (size_t)num, text, at, err));
        done = at + length;
    }
    MLAI_TRY(jinja_builder_add(to, jinja_text_part(text, done, text.bytes), err));
    return jinja_builder_add(to, (jinja_text){.data = &quote, .bytes = 1}, err);
}

static mla_status repr(jinja_builder *to, jinja_value value, mla_error *err);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
static mla_status repr_items(jinja_builder *to, const jinja_list *list, const char *open,
                             const char *close, mla_error *err)
{
    MLAI_TRY(jinja_enter(to->memory, err));
    MLAI_TRY(add(to, open, err));
    for (size_t i = 0; i < list->num; i++) {
        MLAI_TRY(add(to, i > 0 ? ", " : "", err));
        MLAI_TRY(repr(to, list->items[i], err));
    }
    jinja_leave(to->memory);
    return add(to, close, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status repr_dict(jinja_builder *to, const jinja_dict *dict, mla_error *err)
{
    MLAI_TRY(jinja_enter(to->memory, err));
    MLAI_TRY(add(to, "{", err));
    for (size_t i = 0; i < dict->num; i++) {
        MLAI_TRY(add(to, i > 0 ? ", " : "", err));
        MLAI_TRY(repr(to, dict->keys[i], err));
        MLAI_TRY(add(to, ": ", err));
        MLAI_TRY(repr(to, dict->values[i], err));
    }
    jinja_leave(to->memory);
    return add(to, "}", err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status repr_list(jinja_builder *to, jinja_value value, mla_error *err)
{
    const jinja_list *list = value.as.list;
    if (value.kind == JINJA_TUPLE) {
        return repr_items(to, list, "(", list->num == 1 ? ",)" : ")", err);
    }
    if (value.kind == JINJA_VIEW) {
        MLAI_TRY(add(to, list->name, err));
        return repr_items(to, list, "([", "])", err);
    }
    return repr_items(to, list, "[", "]", err);
}

static mla_status print_number(jinja_builder *to, jinja_value value, mla_error *err)
{
    if (value.kind == JINJA_BOOL) {
        return add(to, value.as.truth ? "True" : "False", err);
    }
    if (value.kind == JINJA_FLOAT) {
        return add(to, jinja_digits_of(value.as.real).text, err);
    }
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value.as.integer);
    return add(to, text, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status repr(jinja_builder *to, jinja_value value, mla_error *err)
{
    MLAI_TRY(jinja_spend(to->memory, 0, err));
    if (jinja_is_number(value)) {
        return print_number(to, value, err);
    }
    switch ((int)value.kind) {
    case JINJA_UNDEFINED:
        return add(to, "Undefined", err);
    case JINJA_NONE:
        return add(to, "None", err);
    case JINJA_STR:
        return repr_text(to, value.as.text, err);
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_VIEW:
        return repr_list(to, value, err);
    case JINJA_DICT:
        return repr_dict(to, value.as.dict, err);
    default:
        return MLAI_FAIL(MLA_ERR_UNSUPPORTED, "printing a %s is not supported",
                         jinja_kind_name(value.kind));
    }
}

mla_status jinja_print(jinja_builder *to, jinja_value value, mla_error *err)
{
    if (value.kind == JINJA_UNDEFINED) {
        return MLA_OK;
    }
    return value.kind == JINJA_STR ? jinja_builder_add(to, value.as.text, err)
                                   : repr(to, value, err);
}

mla_status jinja_str_of(jinja_memory *memory, jinja_value value, jinja_text *out,
                        mla_error *err)
{
    if (value.kind == JINJA_STR) {
        *out = value.as.text;
        return MLA_OK;
    }
    jinja_builder builder = {.memory = memory};
    MLAI_TRY(jinja_print(&builder, value, err));
    *out = jinja_builder_text(&builder);
    return MLA_OK;
}
