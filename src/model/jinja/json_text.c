/* json_text.c - tojson, as Python's json.dumps writes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "model/jinja/value.h"
#include "model/utf8.h"

typedef struct json_printer {
    jinja_builder *to;
    const jinja_json_style *style;
    int64_t level;
} json_printer;

static mla_status add(json_printer *to, const char *text, mla_error *err)
{
    return jinja_builder_add(to->to, jinja_text_of(text), err);
}

/* 0: it stands for itself. */
static int escape(uint32_t code, bool is_ascii, char *out, size_t bytes)
{
    static const char names[] = {['"'] = '"',  ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r',
                                 ['\t'] = 't', ['\b'] = 'b',  ['\f'] = 'f'};
    if (code < sizeof names && names[code]) {
        return snprintf(out, bytes, "\\%c", names[code]);
    }
    if (code >= 0x20 && (code < 0x7f || !is_ascii)) {
        return 0;
    }
    if (code >= 0x10000) {
        uint32_t rest = code - 0x10000;
        return snprintf(out, bytes, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + (rest >> 10),
                        0xdc00 + (rest & 0x3ffU));
    }
    return snprintf(out, bytes, "\\u%04" PRIx32, code);
}

static mla_status print_text(json_printer *to, jinja_text text, mla_error *err)
{
    size_t done = 0;
    MLAI_TRY(add(to, "\"", err));
    for (size_t at = 0, length; at < text.bytes; at += length) {
        char escaped[16];
        uint32_t code = utf8_read(text.data + at, &length);
        int num = escape(code, to->style->is_ascii, escaped, sizeof escaped);
        if (num > 0) {
            MLAI_TRY(jinja_builder_add(to->to, jinja_text_part(text, done, at), err));
            MLAI_TRY(jinja_builder_add_like(to->to, escaped, (size_t)num, text, at, err));
            done = at + length;
        }
    }
    MLAI_TRY(jinja_builder_add(to->to, jinja_text_part(text, done, text.bytes), err));
    return add(to, "\"", err);
}

static mla_status print_number(json_printer *to, jinja_value value, mla_error *err)
{
    if (value.kind == JINJA_BOOL) {
        return add(to, value.as.truth ? "true" : "false", err);
    }
    if (value.kind == JINJA_FLOAT && !isfinite(value.as.real)) {
        return add(to,
                   isnan(value.as.real) ? "NaN"
                                        : (value.as.real < 0 ? "-Infinity" : "Infinity"),
                   err);
    }
    return jinja_print(to->to, value, err);
}

static mla_status new_line(json_printer *to, mla_error *err)
{
    if (to->style->indent < 0) {
        return MLA_OK;
    }
    MLAI_TRY(add(to, "\n", err));
    for (int64_t i = 0; i < to->level * to->style->indent; i++) {
        MLAI_TRY(add(to, " ", err));
    }
    return MLA_OK;
}

static mla_status print(json_printer *to, jinja_value value, mla_error *err);

static mla_status separate(json_printer *to, size_t index, mla_error *err)
{
    if (index > 0) {
        MLAI_TRY(jinja_builder_add(to->to, to->style->comma, err));
    }
    return new_line(to, err);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
static mla_status print_list(json_printer *to, const jinja_list *list, mla_error *err)
{
    MLAI_TRY(add(to, "[", err));
    to->level++;
    for (size_t i = 0; i < list->num; i++) {
        MLAI_TRY(separate(to, i, err));
        MLAI_TRY(print(to, list->items[i], err));
    }
    to->level--;
    if (list->num > 0) {
        MLAI_TRY(new_line(to, err));
    }
    return add(to, "]", err);
}

static mla_status print_key(json_printer *to, jinja_value key, mla_error *err)
{
    if (key.kind == JINJA_STR) {
        return print_text(to, key.as.text, err);
    }
    MLAI_TRY(add(to, "\"", err));
    MLAI_TRY(print(to, key, err));
    return add(to, "\"", err);
}

/* The next key after `last` in order, for sort_keys; NULL: none. Keys are all texts there. */
static const jinja_value *next_key(const jinja_dict *dict, const jinja_value *last)
{
    const jinja_value *best = NULL;
    for (size_t i = 0; i < dict->num; i++) {
        const jinja_value *key = &dict->keys[i];
        if ((!last || jinja_text_compare(key->as.text, last->as.text) > 0) &&
            (!best || jinja_text_compare(key->as.text, best->as.text) < 0)) {
            best = key;
        }
    }
    return best;
}

static mla_status check_keys(const jinja_dict *dict, mla_error *err)
{
    for (size_t i = 0; i < dict->num; i++) {
        MLAI_CHECK(dict->keys[i].kind == JINJA_STR, MLA_ERR_UNSUPPORTED,
                   "sort_keys is supported for keys that are texts, and one is a %s",
                   jinja_kind_name(dict->keys[i].kind));
    }
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status print_dict(json_printer *to, const jinja_dict *dict, mla_error *err)
{
    const jinja_value *key = NULL;
    bool is_sorted = to->style->sorts_keys;
    MLAI_TRY(is_sorted ? check_keys(dict, err) : MLA_OK);
    MLAI_TRY(add(to, "{", err));
    to->level++;
    for (size_t i = 0; i < dict->num; i++) {
        MLAI_TRY(jinja_spend(to->to->memory, is_sorted ? dict->num * 64 : 0, err));
        key = is_sorted ? next_key(dict, key) : &dict->keys[i];
        MLAI_TRY(separate(to, i, err));
        MLAI_TRY(print_key(to, *key, err));
        MLAI_TRY(jinja_builder_add(to->to, to->style->colon, err));
        MLAI_TRY(print(to, dict->values[key - dict->keys], err));
    }
    to->level--;
    if (dict->num > 0) {
        MLAI_TRY(new_line(to, err));
    }
    return add(to, "}", err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status print(json_printer *to, jinja_value value, mla_error *err)
{
    mla_status status = MLA_OK;
    if (jinja_is_number(value)) {
        return print_number(to, value, err);
    }
    if (value.kind == JINJA_NONE) {
        return add(to, "null", err);
    }
    if (value.kind == JINJA_STR) {
        return print_text(to, value.as.text, err);
    }
    MLAI_CHECK(
        value.kind == JINJA_LIST || value.kind == JINJA_TUPLE || value.kind == JINJA_DICT,
        MLA_ERR_ARGUMENT, "a value of type %s is no JSON", jinja_kind_name(value.kind));
    MLAI_TRY(jinja_enter(to->to->memory, err));
    status = value.kind == JINJA_DICT ? print_dict(to, value.as.dict, err)
                                      : print_list(to, value.as.list, err);
    jinja_leave(to->to->memory);
    return status;
}

mla_status jinja_print_json(jinja_builder *to, jinja_value value,
                            const jinja_json_style *style, mla_error *err)
{
    json_printer printer = {.to = to, .style = style};
    return print(&printer, value, err);
}
