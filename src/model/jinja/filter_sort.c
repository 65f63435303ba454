/* filter_sort.c - sort, dictsort, unique, min and max. Texts are compared without their case
 * unless case_sensitive says otherwise. */
#include "model/jinja/filter_rows.h"
#include "model/jinja/text_methods.h"

typedef struct sorting {
    bool is_reversed, is_sensitive;
    jinja_value attribute;
} sorting;

static mla_status key_of(jinja_run *run, const sorting *how, jinja_value item,
                         jinja_value *out, mla_error *err)
{
    MLAI_TRY(jinja_follow(run, item, how->attribute, out, err));
    if (out->kind == JINJA_STR && !how->is_sensitive) {
        return jinja_change_case(run, out->as.text, CASE_LOWER, &out->as.text, err);
    }
    return MLA_OK;
}

static mla_status keys_of(jinja_run *run, const sorting *how, const jinja_list *list,
                          jinja_list **out, mla_error *err)
{
    MLAI_TRY(jinja_list_make(run->memory, list->num, out, err));
    for (size_t i = 0; i < list->num; i++) {
        jinja_value key;
        MLAI_TRY(key_of(run, how, list->items[i], &key, err));
        MLAI_TRY(jinja_list_add(run->memory, *out, key, err));
    }
    return MLA_OK;
}

/* Two runs of `order`, [begin, middle) and [middle, end), merged into `to`; stable. */
static mla_status merge(jinja_run *run, const jinja_list *keys, bool is_reversed,
                        const size_t *order, size_t *to, const size_t bounds[3],
                        mla_error *err)
{
    size_t a = bounds[0];
    size_t b = bounds[1];
    for (size_t i = bounds[0]; i < bounds[2]; i++) {
        int ordered = 0;
        if (a < bounds[1] && b < bounds[2]) {
            MLAI_TRY(jinja_order(run->memory, keys->items[order[a]], keys->items[order[b]],
                                 &ordered, err));
            ordered = is_reversed ? -ordered : ordered;
        }
        bool takes_a = a < bounds[1] && (b >= bounds[2] || ordered <= 0);
        to[i] = takes_a ? order[a++] : order[b++];
    }
    return MLA_OK;
}

/* *out: the positions of the keys in their order. */
static mla_status sort_keys(jinja_run *run, const jinja_list *keys, bool is_reversed,
                            size_t **out, mla_error *err)
{
    void *memory = NULL;
    void *other = NULL;
    size_t num = keys->num;
    MLAI_TRY(jinja_take(run->memory, num, sizeof(size_t), &memory, err));
    MLAI_TRY(jinja_take(run->memory, num, sizeof(size_t), &other, err));
    size_t *order = memory;
    size_t *to = other;
    for (size_t i = 0; i < num; i++) {
        order[i] = i;
    }
    for (size_t width = 1; width < num; width *= 2) {
        for (size_t begin = 0; begin < num; begin += 2 * width) {
            size_t middle = begin + width < num ? begin + width : num;
            size_t end = begin + 2 * width < num ? begin + 2 * width : num;
            MLAI_TRY(merge(run, keys, is_reversed, order, to,
                           (const size_t[]){begin, middle, end}, err));
        }
        size_t *kept = order;
        order = to;
        to = kept;
    }
    *out = order;
    return MLA_OK;
}

static mla_status sort_list(jinja_run *run, const sorting *how, const jinja_list *list,
                            jinja_value *out, mla_error *err)
{
    jinja_list *keys = NULL;
    size_t *order = NULL;
    MLAI_TRY(keys_of(run, how, list, &keys, err));
    MLAI_TRY(sort_keys(run, keys, how->is_reversed, &order, err));
    MLAI_TRY(jinja_list_value(run->memory, JINJA_LIST, out, err));
    for (size_t i = 0; i < list->num; i++) {
        MLAI_TRY(jinja_list_add(run->memory, out->as.list, list->items[order[i]], err));
    }
    return MLA_OK;
}

mla_status jinja_filter_sort(jinja_run *run, jinja_value input,
                             const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_bool(false), jinja_bool(false), jinja_none()};
    const jinja_list *list;
    MLAI_TRY(jinja_bind(given, "reverse case_sensitive attribute", values, err));
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    sorting how = {jinja_is_true(values[0]), jinja_is_true(values[1]), values[2]};
    return sort_list(run, &how, list, out, err);
}

mla_status jinja_filter_dictsort(jinja_run *run, jinja_value input,
                                 const jinja_arguments *given, jinja_value *out,
                                 mla_error *err)
{
    jinja_value values[] = {jinja_bool(false), jinja_str(JINJA_TEXT("key")),
                            jinja_bool(false)};
    const jinja_arguments none = {.callee = "dictsort"};
    jinja_value pairs;
    MLAI_TRY(jinja_bind(given, "case_sensitive by reverse", values, err));
    bool by_value =
        values[1].kind == JINJA_STR && jinja_text_is(values[1].as.text, "value");
    MLAI_CHECK(by_value ||
                   (values[1].kind == JINJA_STR && jinja_text_is(values[1].as.text, "key")),
               MLA_ERR_ARGUMENT, "dictsort is by key or by value");
    MLAI_CHECK(input.kind == JINJA_DICT, MLA_ERR_ARGUMENT, "a %s has no items",
               jinja_kind_name(input.kind));
    MLAI_TRY(jinja_filter_items(run, input, &none, &pairs, err));
    sorting how = {jinja_is_true(values[2]), jinja_is_true(values[0]), jinja_int(by_value)};
    return sort_list(run, &how, pairs.as.list, out, err);
}

/* Python keeps what it has seen in a set. */
static mla_status check_hashable(jinja_value key, mla_error *err)
{
    MLAI_CHECK(key.kind != JINJA_LIST && key.kind != JINJA_DICT && key.kind != JINJA_TUPLE,
               MLA_ERR_UNSUPPORTED, "unique is not supported for a %s",
               jinja_kind_name(key.kind));
    return MLA_OK;
}

mla_status jinja_filter_unique(jinja_run *run, jinja_value input,
                               const jinja_arguments *given, jinja_value *out,
                               mla_error *err)
{
    jinja_value values[] = {jinja_bool(false), jinja_none()};
    const jinja_list *list;
    jinja_list *seen = NULL;
    MLAI_TRY(jinja_bind(given, "case_sensitive attribute", values, err));
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    MLAI_TRY(jinja_list_make(run->memory, 0, &seen, err));
    MLAI_TRY(jinja_list_value(run->memory, JINJA_STREAM, out, err));
    sorting how = {false, jinja_is_true(values[0]), values[1]};
    for (size_t i = 0; i < list->num; i++) {
        jinja_value key;
        bool is_known = false;
        MLAI_TRY(key_of(run, &how, list->items[i], &key, err));
        MLAI_TRY(check_hashable(key, err));
        MLAI_TRY(jinja_contains(run, (jinja_value){.kind = JINJA_LIST, .as.list = seen},
                                key, &is_known, err));
        if (!is_known) {
            MLAI_TRY(jinja_list_add(run->memory, seen, key, err));
            MLAI_TRY(jinja_list_add(run->memory, out->as.list, list->items[i], err));
        }
    }
    return MLA_OK;
}

static mla_status extreme(jinja_run *run, jinja_value input, const jinja_arguments *given,
                          int sign, jinja_value *out, mla_error *err)
{
    jinja_value values[] = {jinja_bool(false), jinja_none()};
    const jinja_list *list;
    jinja_value best = jinja_none();
    MLAI_TRY(jinja_bind(given, "case_sensitive attribute", values, err));
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    *out = jinja_undefined(JINJA_TEXT("the least or most of nothing"));
    sorting how = {false, jinja_is_true(values[0]), values[1]};
    for (size_t i = 0; i < list->num; i++) {
        jinja_value key;
        int order = 1;
        MLAI_TRY(key_of(run, &how, list->items[i], &key, err));
        if (i > 0) {
            MLAI_TRY(jinja_order(run->memory, key, best, &order, err));
            order *= sign;
        }
        if (order > 0) {
            best = key;
            *out = list->items[i];
        }
    }
    return MLA_OK;
}

mla_status jinja_filter_min(jinja_run *run, jinja_value input, const jinja_arguments *given,
                            jinja_value *out, mla_error *err)
{
    return extreme(run, input, given, -1, out, err);
}

mla_status jinja_filter_max(jinja_run *run, jinja_value input, const jinja_arguments *given,
                            jinja_value *out, mla_error *err)
{
    return extreme(run, input, given, 1, out, err);
}
