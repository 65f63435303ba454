/* filter_list.c - filters of lists. */
#include "model/jinja/filter_rows.h"

static bool is_digits(jinja_text text)
{
    bool is_so = text.bytes > 0 && text.bytes < 10;
    for (size_t i = 0; i < text.bytes; i++) {
        is_so = is_so && text.data[i] >= '0' && text.data[i] <= '9';
    }
    return is_so;
}

static int64_t number_of(jinja_text digits)
{
    int64_t number = 0;
    for (size_t i = 0; i < digits.bytes; i++) {
        number = number * 10 + (digits.data[i] - '0');
    }
    return number;
}

mla_status jinja_follow(jinja_run *run, jinja_value value, jinja_value attribute,
                        jinja_value *out, mla_error *err)
{
    *out = value;
    if (attribute.kind == JINJA_NONE) {
        return MLA_OK;
    }
    if (attribute.kind == JINJA_INT) {
        return jinja_index(run, value, attribute, out, err);
    }
    MLAI_CHECK(attribute.kind == JINJA_STR, MLA_ERR_ARGUMENT,
               "an attribute is a text, not a %s", jinja_kind_name(attribute.kind));
    jinja_text path = attribute.as.text;
    for (size_t at = 0; at <= path.bytes;) {
        size_t end = jinja_text_find(path, JINJA_TEXT("."), at);
        end = end == SIZE_MAX ? path.bytes : end;
        jinja_text part = jinja_text_part(path, at, end);
        jinja_value key = is_digits(part) ? jinja_int(number_of(part)) : jinja_str(part);
        MLAI_TRY(jinja_index(run, *out, key, out, err));
        at = end + 1;
    }
    return MLA_OK;
}

mla_status jinja_filter_join(jinja_run *run, jinja_value input,
                             const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_str(JINJA_TEXT("")), jinja_none()};
    jinja_builder built = {.memory = run->memory};
    const jinja_list *list;
    MLAI_TRY(jinja_bind(given, "d attribute", values, err));
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    for (size_t i = 0; i < list->num; i++) {
        jinja_value item;
        MLAI_TRY(jinja_follow(run, list->items[i], values[1], &item, err));
        MLAI_TRY(i > 0 ? jinja_print(&built, values[0], err) : MLA_OK);
        MLAI_TRY(jinja_print(&built, item, err));
    }
    *out = jinja_str(jinja_builder_text(&built));
    return MLA_OK;
}

static mla_status copy_of(jinja_run *run, jinja_value input, jinja_kind kind,
                          bool is_reversed, jinja_value *out, mla_error *err)
{
    const jinja_list *list;
    jinja_list *copied = NULL;
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    MLAI_TRY(jinja_list_make(run->memory, list->num, &copied, err));
    for (size_t i = 0; i < list->num; i++) {
        size_t at = is_reversed ? list->num - 1 - i : i;
        MLAI_TRY(jinja_list_add(run->memory, copied, list->items[at], err));
    }
    *out = (jinja_value){.kind = kind, .as.list = copied};
    return MLA_OK;
}

mla_status jinja_filter_list(jinja_run *run, jinja_value input,
                             const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    return copy_of(run, input, JINJA_LIST, false, out, err);
}

mla_status jinja_filter_reverse(jinja_run *run, jinja_value input,
                                const jinja_arguments *given, jinja_value *out,
                                mla_error *err)
{
    jinja_value all;
    jinja_builder built = {.memory = run->memory};
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    MLAI_TRY(copy_of(run, input, JINJA_STREAM, true, &all, err));
    *out = all;
    if (input.kind != JINJA_STR) {
        return MLA_OK;
    }
    for (size_t i = 0; i < all.as.list->num; i++) {
        MLAI_TRY(jinja_builder_add(&built, all.as.list->items[i].as.text, err));
    }
    *out = jinja_str(jinja_builder_text(&built));
    return MLA_OK;
}

mla_status jinja_filter_first(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    const jinja_list *list;
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    *out = list->num > 0 ? list->items[0]
                         : jinja_undefined(JINJA_TEXT("the first of nothing"));
    return MLA_OK;
}

mla_status jinja_filter_last(jinja_run *run, jinja_value input,
                             const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    const jinja_list *list;
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    MLAI_CHECK(input.kind != JINJA_STREAM, MLA_ERR_ARGUMENT,
               "a generator has no last item");
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    *out = list->num > 0 ? list->items[list->num - 1]
                         : jinja_undefined(JINJA_TEXT("the last of nothing"));
    return MLA_OK;
}

mla_status jinja_filter_items(jinja_run *run, jinja_value input,
                              const jinja_arguments *given, jinja_value *out,
                              mla_error *err)
{
    MLAI_TRY(jinja_bind(given, "", NULL, err));
    MLAI_CHECK(input.kind == JINJA_DICT || input.kind == JINJA_UNDEFINED, MLA_ERR_ARGUMENT,
               "a %s has no items", jinja_kind_name(input.kind));
    MLAI_TRY(jinja_list_value(run->memory, JINJA_STREAM, out, err));
    for (size_t i = 0; input.kind == JINJA_DICT && i < input.as.dict->num; i++) {
        jinja_value pair;
        MLAI_TRY(jinja_list_value(run->memory, JINJA_TUPLE, &pair, err));
        MLAI_TRY(jinja_list_add(run->memory, pair.as.list, input.as.dict->keys[i], err));
        MLAI_TRY(jinja_list_add(run->memory, pair.as.list, input.as.dict->values[i], err));
        MLAI_TRY(jinja_list_add(run->memory, out->as.list, pair, err));
    }
    return MLA_OK;
}

mla_status jinja_filter_sum(jinja_run *run, jinja_value input, const jinja_arguments *given,
                            jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_none(), jinja_int(0)};
    const jinja_list *list;
    MLAI_TRY(jinja_bind(given, "attribute start", values, err));
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    *out = values[1];
    for (size_t i = 0; i < list->num; i++) {
        jinja_value item;
        MLAI_TRY(jinja_follow(run, list->items[i], values[0], &item, err));
        MLAI_CHECK(item.kind != JINJA_STR, MLA_ERR_ARGUMENT, "sum adds no texts");
        MLAI_TRY(jinja_combine(run, OPERATOR_ADD, *out, item, out, err));
    }
    return MLA_OK;
}
