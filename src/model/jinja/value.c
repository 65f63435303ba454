/* value.c - making values, and the questions that are cheap. */
#include "model/jinja/value.h"

const char *jinja_kind_name(jinja_kind kind)
{
    static const char *const names[] = {
        [JINJA_UNDEFINED] = "undefined", [JINJA_NONE] = "none",
        [JINJA_BOOL] = "bool",           [JINJA_INT] = "int",
        [JINJA_FLOAT] = "float",         [JINJA_STR] = "str",
        [JINJA_LIST] = "list",           [JINJA_TUPLE] = "tuple",
        [JINJA_VIEW] = "dict view",      [JINJA_STREAM] = "generator",
        [JINJA_RANGE] = "range",         [JINJA_DICT] = "dict",
        [JINJA_NAMESPACE] = "namespace", [JINJA_MACRO] = "macro",
        [JINJA_GLOBAL] = "function",     [JINJA_METHOD] = "method",
        [JINJA_LOOP] = "loop",
    };
    return names[kind];
}

bool jinja_is_list(jinja_value value)
{
    return value.kind == JINJA_LIST || value.kind == JINJA_TUPLE ||
           value.kind == JINJA_VIEW || value.kind == JINJA_STREAM ||
           value.kind == JINJA_RANGE;
}

bool jinja_is_number(jinja_value value)
{
    return value.kind == JINJA_BOOL || value.kind == JINJA_INT || value.kind == JINJA_FLOAT;
}

double jinja_real_of(jinja_value number)
{
    return number.kind == JINJA_FLOAT ? number.as.real : (double)jinja_int_of(number);
}

int64_t jinja_int_of(jinja_value number)
{
    return number.kind == JINJA_BOOL ? number.as.truth : number.as.integer;
}

bool jinja_is_true(jinja_value value)
{
    if (value.kind == JINJA_UNDEFINED || value.kind == JINJA_NONE) {
        return false;
    }
    if (value.kind == JINJA_STREAM) {
        return true;
    }
    if (jinja_is_number(value)) {
        return value.kind == JINJA_FLOAT ? value.as.real != 0 : jinja_int_of(value) != 0;
    }
    if (value.kind == JINJA_STR) {
        return value.as.text.bytes > 0;
    }
    if (jinja_is_list(value)) {
        return value.as.list->num > 0;
    }
    return value.kind != JINJA_DICT || value.as.dict->num > 0;
}

mla_status jinja_list_make(jinja_memory *memory, size_t capacity, jinja_list **out,
                           mla_error *err)
{
    void *list = NULL;
    void *items = NULL;
    MLAI_TRY(jinja_take(memory, 1, sizeof(jinja_list), &list, err));
    MLAI_TRY(jinja_take(memory, capacity, sizeof(jinja_value), &items, err));
    *out = list;
    **out = (jinja_list){.items = items, .capacity = capacity};
    return MLA_OK;
}

mla_status jinja_list_value(jinja_memory *memory, jinja_kind kind, jinja_value *out,
                            mla_error *err)
{
    out->kind = kind;
    return jinja_list_make(memory, 0, &out->as.list, err);
}

enum { FIRST_ITEMS = 4 };

static mla_status grow(jinja_memory *memory, jinja_value **items, size_t num,
                       size_t capacity, mla_error *err)
{
    void *larger = NULL;
    MLAI_TRY(jinja_take(memory, capacity, sizeof(jinja_value), &larger, err));
    jinja_value *to = larger;
    for (size_t i = 0; i < num; i++) {
        to[i] = (*items)[i];
    }
    *items = to;
    return MLA_OK;
}

mla_status jinja_list_add(jinja_memory *memory, jinja_list *list, jinja_value value,
                          mla_error *err)
{
    if (list->num == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity * 2 : FIRST_ITEMS;
        MLAI_TRY(grow(memory, &list->items, list->num, capacity, err));
        list->capacity = capacity;
    }
    list->items[list->num++] = value;
    return jinja_spend(memory, 0, err);
}

mla_status jinja_dict_make(jinja_memory *memory, size_t capacity, jinja_dict **out,
                           mla_error *err)
{
    void *dict = NULL;
    MLAI_TRY(jinja_take(memory, 1, sizeof(jinja_dict), &dict, err));
    *out = dict;
    if (capacity > 0) {
        MLAI_TRY(grow(memory, &(*out)->keys, 0, capacity, err));
        MLAI_TRY(grow(memory, &(*out)->values, 0, capacity, err));
        (*out)->capacity = capacity;
    }
    return MLA_OK;
}

/* Keys are texts, numbers or none: what is equal as such is the same key. */
static bool is_same_key(jinja_value a, jinja_value b)
{
    if (a.kind == JINJA_STR || b.kind == JINJA_STR) {
        return a.kind == b.kind && jinja_text_equal(a.as.text, b.as.text);
    }
    if (jinja_is_number(a) && jinja_is_number(b)) {
        return a.kind == JINJA_FLOAT || b.kind == JINJA_FLOAT
                   ? jinja_real_of(a) == jinja_real_of(b)
                   : jinja_int_of(a) == jinja_int_of(b);
    }
    return a.kind == b.kind && a.kind == JINJA_NONE;
}

static jinja_value *slot_of(const jinja_dict *dict, jinja_value key)
{
    for (size_t i = 0; i < dict->num; i++) {
        if (is_same_key(dict->keys[i], key)) {
            return &dict->values[i];
        }
    }
    return NULL;
}

mla_status jinja_dict_set(jinja_memory *memory, jinja_dict *dict, jinja_value key,
                          jinja_value value, mla_error *err)
{
    MLAI_CHECK(key.kind == JINJA_STR || key.kind == JINJA_NONE || jinja_is_number(key),
               MLA_ERR_UNSUPPORTED, "a %s is not supported as the key of a dict",
               jinja_kind_name(key.kind));
    MLAI_TRY(jinja_spend(memory, dict->num, err));
    jinja_value *slot = slot_of(dict, key);
    if (slot) {
        *slot = value;
        return MLA_OK;
    }
    if (dict->num == dict->capacity) {
        size_t capacity = dict->capacity > 0 ? dict->capacity * 2 : FIRST_ITEMS;
        MLAI_TRY(grow(memory, &dict->keys, dict->num, capacity, err));
        MLAI_TRY(grow(memory, &dict->values, dict->num, capacity, err));
        dict->capacity = capacity;
    }
    dict->keys[dict->num] = key;
    dict->values[dict->num++] = value;
    return MLA_OK;
}

const jinja_value *jinja_dict_get(const jinja_dict *dict, jinja_value key)
{
    return slot_of(dict, key);
}

const jinja_value *jinja_dict_find(const jinja_dict *dict, jinja_text key)
{
    return slot_of(dict, jinja_str(key));
}
