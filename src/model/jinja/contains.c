/* contains.c - whether a value holds another: `in`. */
#include "model/jinja/run.h"

mla_status jinja_contains(jinja_run *run, jinja_value whole, jinja_value part, bool *out,
                          mla_error *err)
{
    const jinja_list *list;
    if (whole.kind == JINJA_DICT) {
        MLAI_CHECK(part.kind != JINJA_LIST && part.kind != JINJA_DICT, MLA_ERR_ARGUMENT,
                   "a %s is no key of a dict", jinja_kind_name(part.kind));
        MLAI_TRY(jinja_spend(run->memory, whole.as.dict->num, err));
        *out = jinja_dict_get(whole.as.dict, part) != NULL;
        return MLA_OK;
    }
    if (whole.kind == JINJA_STR) {
        MLAI_CHECK(part.kind == JINJA_STR, MLA_ERR_ARGUMENT,
                   "a %s cannot be looked for in a text", jinja_kind_name(part.kind));
        MLAI_TRY(jinja_spend(run->memory, whole.as.text.bytes, err));
        *out = jinja_text_find(whole.as.text, part.as.text, 0) != SIZE_MAX;
        return MLA_OK;
    }
    *out = false;
    MLAI_TRY(jinja_iterate(run, whole, &list, err));
    for (size_t i = 0; i < list->num && !*out; i++) {
        MLAI_TRY(jinja_equal(run->memory, list->items[i], part, out, err));
    }
    return MLA_OK;
}
