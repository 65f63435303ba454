/* text_methods.c - changing texts. Every byte of a result keeps the mark of the byte that it
 * came from. */
#include "model/jinja/text_methods.h"

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool begins_word(jinja_text text, size_t at, jinja_letter_case wanted)
{
    if (at == 0) {
        return true;
    }
    char before = text.data[at - 1];
    if (wanted == CASE_TITLE) {
        return !is_upper(before) && !is_lower(before);
    }
    return wanted == CASE_WORDS &&
           (jinja_text_space_before(text, at) > 0 || before == '(' || before == '[' ||
            before == '{' || before == '<' || before == '-');
}

mla_status jinja_change_case(jinja_run *run, jinja_text text, jinja_letter_case wanted,
                             jinja_text *out, mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(jinja_spend(run->memory, text.bytes, err));
    MLAI_TRY(jinja_take(run->memory, text.bytes, 1, &memory, err));
    char *to = memory;
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        MLAI_CHECK((unsigned char)c < 0x80, MLA_ERR_UNSUPPORTED,
                   "upper and lower case are supported for ASCII, not for '%.*s'",
                   JINJA_SHOWN(text));
        bool raises =
            wanted == CASE_UPPER || (wanted != CASE_LOWER && begins_word(text, i, wanted));
        to[i] = c;
        if (raises ? is_lower(c) : is_upper(c)) {
            to[i] = (char)(c ^ 0x20);
        }
    }
    *out = text;
    out->data = to;
    return MLA_OK;
}

mla_status jinja_replace(jinja_run *run, jinja_text text, jinja_text from, jinja_text to,
                         int64_t limit, jinja_text *out, mla_error *err)
{
    jinja_builder built = {.memory = run->memory};
    size_t at = 0;
    for (int64_t i = 0; limit < 0 || i < limit; i++) {
        size_t found = jinja_text_find(text, from, at);
        if (found == SIZE_MAX) {
            break;
        }
        MLAI_TRY(jinja_spend(run->memory, found - at, err));
        MLAI_TRY(jinja_builder_add(&built, jinja_text_part(text, at, found), err));
        MLAI_TRY(jinja_builder_add(&built, to, err));
        at = found + from.bytes;
        if (from.bytes == 0) { /* before each character, and at the end */
            size_t next = jinja_text_offset(text, at, 1);
            MLAI_TRY(jinja_builder_add(&built, jinja_text_part(text, at, next), err));
            if (at == text.bytes) {
                break;
            }
            at = next;
        }
    }
    MLAI_TRY(jinja_builder_add(&built, jinja_text_part(text, at, text.bytes), err));
    *out = jinja_builder_text(&built);
    return MLA_OK;
}

static bool is_in_set(jinja_text set, jinja_text text, size_t begin, size_t end)
{
    return jinja_text_find(set, jinja_text_part(text, begin, end), 0) != SIZE_MAX;
}

jinja_text jinja_strip_set(jinja_text text, jinja_text set, bool left, bool right)
{
    if (!set.data) {
        return jinja_text_strip(text, left, right);
    }
    size_t begin = 0;
    size_t end = text.bytes;
    while (left && begin < end) {
        size_t next = jinja_text_offset(text, begin, 1);
        if (!is_in_set(set, text, begin, next)) {
            break;
        }
        begin = next;
    }
    while (right && end > begin) {
        size_t before = end - 1;
        while (before > begin && ((unsigned char)text.data[before] & 0xc0U) == 0x80U) {
            before--;
        }
        if (!is_in_set(set, text, before, end)) {
            break;
        }
        end = before;
    }
    return jinja_text_part(text, begin, end);
}

static mla_status add_part(jinja_run *run, jinja_list *list, jinja_text text, size_t begin,
                           size_t end, mla_error *err)
{
    MLAI_TRY(jinja_spend(run->memory, end - begin, err));
    return jinja_list_add(run->memory, list, jinja_str(jinja_text_part(text, begin, end)),
                          err);
}

static size_t skip(jinja_text text, size_t at, bool over_space)
{
    while (at < text.bytes) {
        size_t space = jinja_text_space_at(text, at);
        if ((space > 0) != over_space) {
            break;
        }
        at = space > 0 ? at + space : jinja_text_offset(text, at, 1);
    }
    return at;
}

static mla_status split_words(jinja_run *run, jinja_text text, int64_t limit,
                              jinja_list *list, mla_error *err)
{
    size_t at = skip(text, 0, true);
    while (at < text.bytes) {
        size_t end = skip(text, at, false);
        if (limit >= 0 && (int64_t)list->num >= limit) {
            return add_part(
                run, list, text, at,
                at + jinja_text_strip(jinja_text_part(text, at, text.bytes), false, true)
                         .bytes,
                err);
        }
        MLAI_TRY(add_part(run, list, text, at, end, err));
        at = skip(text, end, true);
    }
    return MLA_OK;
}

mla_status jinja_split(jinja_run *run, jinja_text text, jinja_text separator, int64_t limit,
                       jinja_value *out, mla_error *err)
{
    size_t at = 0;
    MLAI_TRY(jinja_list_value(run->memory, JINJA_LIST, out, err));
    jinja_list *list = out->as.list;
    if (!separator.data) {
        return split_words(run, text, limit, list, err);
    }
    MLAI_CHECK(separator.bytes > 0, MLA_ERR_ARGUMENT, "the separator of split is empty");
    while (limit < 0 || (int64_t)list->num < limit) {
        size_t found = jinja_text_find(text, separator, at);
        if (found == SIZE_MAX) {
            break;
        }
        MLAI_TRY(add_part(run, list, text, at, found, err));
        at = found + separator.bytes;
    }
    return add_part(run, list, text, at, text.bytes, err);
}

static void reverse(jinja_list *list)
{
    for (size_t i = 0; i < list->num / 2; i++) {
        jinja_value kept = list->items[i];
        list->items[i] = list->items[list->num - 1 - i];
        list->items[list->num - 1 - i] = kept;
    }
}

mla_status jinja_split_back(jinja_run *run, jinja_text text, jinja_text separator,
                            int64_t limit, jinja_value *out, mla_error *err)
{
    size_t end = text.bytes;
    if (limit < 0) {
        return jinja_split(run, text, separator, limit, out, err);
    }
    MLAI_CHECK(separator.bytes > 0, MLA_ERR_UNSUPPORTED,
               "rsplit with a limit needs a separator");
    MLAI_TRY(jinja_list_value(run->memory, JINJA_LIST, out, err));
    while ((int64_t)out->as.list->num < limit) {
        size_t found = jinja_text_find_last(text, separator, end);
        if (found == SIZE_MAX) {
            break;
        }
        MLAI_TRY(add_part(run, out->as.list, text, found + separator.bytes, end, err));
        end = found;
    }
    MLAI_TRY(add_part(run, out->as.list, text, 0, end, err));
    reverse(out->as.list);
    return MLA_OK;
}

/* The bytes of the line's end at `at`, as str.splitlines has it; 0: none. */
static size_t line_end_at(jinja_text text, size_t at)
{
    static const char *const ends[] = {"\r\n",     "\n",           "\r",          "\v",
                                       "\f",       "\x1c",         "\x1d",        "\x1e",
                                       "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        jinja_text end = jinja_text_of(ends[i]);
        if (text.bytes - at >= end.bytes &&
            jinja_text_equal(jinja_text_part(text, at, at + end.bytes), end)) {
            return end.bytes;
        }
    }
    return 0;
}

mla_status jinja_split_lines(jinja_run *run, jinja_text text, bool keeps_ends,
                             jinja_value *out, mla_error *err)
{
    size_t begin = 0;
    MLAI_TRY(jinja_list_value(run->memory, JINJA_LIST, out, err));
    for (size_t at = 0; at < text.bytes;) {
        size_t end = line_end_at(text, at);
        if (end > 0) {
            MLAI_TRY(
                add_part(run, out->as.list, text, begin, keeps_ends ? at + end : at, err));
            begin = at + end;
        }
        at += end > 0 ? end : 1;
    }
    return begin < text.bytes ? add_part(run, out->as.list, text, begin, text.bytes, err)
                              : MLA_OK;
}
