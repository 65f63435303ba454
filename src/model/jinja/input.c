/* input.c - JSON becomes values, each text with its mark. */
#include "model/jinja/input.h"

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
static mla_status read_array(jinja_memory *memory, const json_t *json, bool is_input,
                             jinja_value *out, mla_error *err)
{
    jinja_list *list = NULL;
    MLAI_TRY(jinja_list_make(memory, json_array_size(json), &list, err));
    for (size_t i = 0; i < json_array_size(json); i++) {
        jinja_value item;
        MLAI_TRY(
            jinja_value_of_json(memory, json_array_get(json, i), is_input, &item, err));
        MLAI_TRY(jinja_list_add(memory, list, item, err));
    }
    *out = (jinja_value){.kind = JINJA_LIST, .as.list = list};
    return MLA_OK;
}

/* The keys of a JSON object differ, so they need not be looked for. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status read_object(jinja_memory *memory, const json_t *json, bool is_input,
                              jinja_value *out, mla_error *err)
{
    jinja_dict *dict = NULL;
    json_t *object =
        (json_t *)(uintptr_t)json; /* its iterator wants it so, and only reads */
    MLAI_TRY(jinja_dict_make(memory, json_object_size(json), &dict, err));
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        jinja_text key = jinja_text_of(json_object_iter_key(at));
        key.is_input = is_input;
        MLAI_TRY(jinja_value_of_json(memory, json_object_iter_value(at), is_input,
                                     &dict->values[dict->num], err));
        dict->keys[dict->num++] = jinja_str(key);
    }
    *out = (jinja_value){.kind = JINJA_DICT, .as.dict = dict};
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_value_of_json(jinja_memory *memory, const json_t *json, bool is_input,
                               jinja_value *out, mla_error *err)
{
    MLAI_TRY(jinja_spend(memory, 0, err));
    switch (json_typeof(json)) {
    case JSON_STRING:
        *out = jinja_str((jinja_text){.data = json_string_value(json),
                                      .bytes = json_string_length(json),
                                      .is_input = is_input});
        return MLA_OK;
    case JSON_INTEGER:
        *out = jinja_int(json_integer_value(json));
        return MLA_OK;
    case JSON_REAL:
        *out = jinja_float(json_real_value(json));
        return MLA_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = jinja_bool(json_is_true(json));
        return MLA_OK;
    case JSON_NULL:
        *out = jinja_none();
        return MLA_OK;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    MLAI_TRY(jinja_enter(memory, err));
    MLAI_TRY(json_is_array(json) ? read_array(memory, json, is_input, out, err)
                                 : read_object(memory, json, is_input, out, err));
    jinja_leave(memory);
    return MLA_OK;
}
