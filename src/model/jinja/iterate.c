/* iterate.c - going through a value. */
#include "model/jinja/run.h"

static mla_status characters(jinja_run *run, jinja_text text, const jinja_list **out,
                             mla_error *err)
{
    jinja_list *list = NULL;
    MLAI_TRY(jinja_list_make(run->memory, jinja_text_length(text), &list, err));
    for (size_t at = 0; at < text.bytes;) {
        size_t end = jinja_text_offset(text, at, 1);
        jinja_value one = jinja_str(jinja_text_part(text, at, end));
        MLAI_TRY(jinja_list_add(run->memory, list, one, err));
        at = end;
    }
    *out = list;
    return MLA_OK;
}

static mla_status list_of(jinja_run *run, const jinja_value *items, size_t num,
                          const jinja_list **out, mla_error *err)
{
    jinja_list *list = NULL;
    MLAI_TRY(jinja_list_make(run->memory, num, &list, err));
    for (size_t i = 0; i < num; i++) {
        MLAI_TRY(jinja_list_add(run->memory, list, items[i], err));
    }
    *out = list;
    return MLA_OK;
}

mla_status jinja_iterate(jinja_run *run, jinja_value value, const jinja_list **out,
                         mla_error *err)
{
    if (value.kind == JINJA_STREAM) {
        jinja_list *list = value.as.list;
        size_t from = list->next;
        list->next = list->num;
        return list_of(run, list->items + from, list->num - from, out, err);
    }
    if (jinja_is_list(value)) {
        *out = value.as.list;
        return MLA_OK;
    }
    if (value.kind == JINJA_STR) {
        return characters(run, value.as.text, out, err);
    }
    if (value.kind == JINJA_DICT) {
        return list_of(run, value.as.dict->keys, value.as.dict->num, out, err);
    }
    MLAI_CHECK(value.kind == JINJA_UNDEFINED, MLA_ERR_ARGUMENT,
               "a %s has nothing to go through", jinja_kind_name(value.kind));
    return list_of(run, NULL, 0, out, err);
}
