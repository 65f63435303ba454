/* compare.c - Python's equality and order. */
#include "model/jinja/value.h"

/* Lists hold only what was there before them, so this ends. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status equal_lists(jinja_memory *memory, const jinja_list *a,
                              const jinja_list *b, bool *out, mla_error *err)
{
    *out = a->num == b->num;
    for (size_t i = 0; *out && i < a->num; i++) {
        MLAI_TRY(jinja_equal(memory, a->items[i], b->items[i], out, err));
    }
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status equal_dicts(jinja_memory *memory, const jinja_dict *a,
                              const jinja_dict *b, bool *out, mla_error *err)
{
    *out = a->num == b->num;
    for (size_t i = 0; *out && i < a->num; i++) {
        const jinja_value *other = jinja_dict_get(b, a->keys[i]);
        MLAI_TRY(jinja_spend(memory, b->num, err));
        *out = other != NULL;
        if (other) {
            MLAI_TRY(jinja_equal(memory, a->values[i], *other, out, err));
        }
    }
    return MLA_OK;
}

static bool is_one_of(jinja_value a, jinja_value b)
{
    switch (a.kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return true;
    case JINJA_GLOBAL:
        return a.as.global == b.as.global;
    case JINJA_NAMESPACE:
        return a.as.dict == b.as.dict;
    case JINJA_MACRO:
        return a.as.macro == b.as.macro;
    case JINJA_METHOD:
        return a.as.method == b.as.method;
    case JINJA_LOOP:
        return a.as.loop == b.as.loop;
    case JINJA_VIEW:
    case JINJA_STREAM:
        return a.as.list == b.as.list;
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_FLOAT:
    case JINJA_STR:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
    case JINJA_DICT:
        break;
    }
    return false;
}

/* Python compares an int and a float exactly, whatever their size. */
static int order_numbers(jinja_value a, jinja_value b, bool *is_ordered)
{
    *is_ordered = true;
    if (a.kind == JINJA_FLOAT || b.kind == JINJA_FLOAT) {
        long double x = a.kind == JINJA_FLOAT ? (long double)a.as.real : jinja_int_of(a);
        long double y = b.kind == JINJA_FLOAT ? (long double)b.as.real : jinja_int_of(b);
        *is_ordered = x == x && y == y;
        return (x > y) - (x < y);
    }
    return (jinja_int_of(a) > jinja_int_of(b)) - (jinja_int_of(a) < jinja_int_of(b));
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status equal_inside(jinja_memory *memory, jinja_value a, jinja_value b,
                               bool *out, mla_error *err)
{
    MLAI_TRY(jinja_enter(memory, err));
    if (a.kind == JINJA_DICT) {
        MLAI_TRY(equal_dicts(memory, a.as.dict, b.as.dict, out, err));
    } else {
        MLAI_TRY(equal_lists(memory, a.as.list, b.as.list, out, err));
    }
    jinja_leave(memory);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_equal(jinja_memory *memory, jinja_value a, jinja_value b, bool *out,
                       mla_error *err)
{
    MLAI_TRY(jinja_spend(memory, a.kind == JINJA_STR ? a.as.text.bytes : 0, err));
    if (jinja_is_number(a) && jinja_is_number(b)) {
        bool is_ordered;
        int order = order_numbers(a, b, &is_ordered);
        *out = is_ordered && order == 0;
        return MLA_OK;
    }
    if (a.kind != b.kind) {
        *out = false;
        return MLA_OK;
    }
    if (a.kind == JINJA_STR) {
        *out = jinja_text_equal(a.as.text, b.as.text);
        return MLA_OK;
    }
    if (a.kind == JINJA_DICT || a.kind == JINJA_LIST || a.kind == JINJA_TUPLE ||
        a.kind == JINJA_RANGE) {
        return equal_inside(memory, a, b, out, err);
    }
    *out = is_one_of(a, b);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status order_lists(jinja_memory *memory, const jinja_list *a,
                              const jinja_list *b, int *out, mla_error *err)
{
    MLAI_TRY(jinja_enter(memory, err));
    for (size_t i = 0; i < a->num && i < b->num; i++) {
        bool is_equal;
        MLAI_TRY(jinja_equal(memory, a->items[i], b->items[i], &is_equal, err));
        if (!is_equal) {
            jinja_leave(memory);
            return jinja_order(memory, a->items[i], b->items[i], out, err);
        }
    }
    jinja_leave(memory);
    *out = (a->num > b->num) - (a->num < b->num);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_order(jinja_memory *memory, jinja_value a, jinja_value b, int *out,
                       mla_error *err)
{
    MLAI_TRY(jinja_spend(memory, a.kind == JINJA_STR ? a.as.text.bytes : 0, err));
    if (jinja_is_number(a) && jinja_is_number(b)) {
        bool is_ordered;
        *out = order_numbers(a, b, &is_ordered);
        MLAI_CHECK(is_ordered, MLA_ERR_UNSUPPORTED, "NaN has no order here");
        return MLA_OK;
    }
    if (a.kind == b.kind && a.kind == JINJA_STR) {
        *out = jinja_text_compare(a.as.text, b.as.text);
        return MLA_OK;
    }
    if (a.kind == b.kind && (a.kind == JINJA_LIST || a.kind == JINJA_TUPLE)) {
        return order_lists(memory, a.as.list, b.as.list, out, err);
    }
    return MLAI_FAIL(MLA_ERR_ARGUMENT, "'%s' and '%s' have no order",
                     jinja_kind_name(a.kind), jinja_kind_name(b.kind));
}
