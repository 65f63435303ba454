/* filter_select.c - select, reject, selectattr, rejectattr and map. */
#include "model/jinja/filter_rows.h"

typedef struct selection {
    bool has_attribute, is_rejected;
    jinja_value attribute;
    int32_t test; /* -1: truth */
    jinja_arguments arguments;
} selection;

static mla_status read_selection(const jinja_arguments *given, selection *out,
                                 mla_error *err)
{
    int32_t num_used = 0;
    out->attribute = jinja_none();
    MLAI_CHECK(given->num_named == 0, MLA_ERR_UNSUPPORTED,
               "%s is supported without named arguments", given->callee);
    if (out->has_attribute) {
        MLAI_CHECK(given->num > 0, MLA_ERR_ARGUMENT, "%s takes an attribute",
                   given->callee);
        out->attribute = given->values[num_used++];
    }
    out->test = -1;
    if (given->num > num_used) {
        jinja_value name = given->values[num_used++];
        out->test = name.kind == JINJA_STR ? jinja_test_find(name.as.text) : -1;
        MLAI_CHECK(out->test >= 0, MLA_ERR_UNSUPPORTED,
                   "%s: the test '%.*s' is not supported", given->callee,
                   name.kind == JINJA_STR ? jinja_text_shown(name.as.text) : 1,
                   name.kind == JINJA_STR ? name.as.text.data : "?");
    }
    out->arguments = (jinja_arguments){.values = given->values + num_used,
                                       .num = given->num - num_used,
                                       .callee = given->callee};
    return MLA_OK;
}

static mla_status is_selected(jinja_run *run, const selection *how, jinja_value item,
                              bool *out, mla_error *err)
{
    jinja_value value;
    MLAI_TRY(jinja_follow(run, item, how->attribute, &value, err));
    if (how->test < 0) {
        *out = jinja_is_true(value) != how->is_rejected;
        return MLA_OK;
    }
    MLAI_TRY(jinja_test_apply(run, how->test, value, &how->arguments, out, err));
    *out = *out != how->is_rejected;
    return MLA_OK;
}

static mla_status apply(jinja_run *run, jinja_value input, const jinja_arguments *given,
                        selection *how, jinja_value *out, mla_error *err)
{
    const jinja_list *list;
    input = jinja_is_true(input) ? input : jinja_undefined(JINJA_TEXT("")); /* nothing */
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    MLAI_TRY(read_selection(given, how, err));
    MLAI_TRY(jinja_list_value(run->memory, JINJA_STREAM, out, err));
    for (size_t i = 0; i < list->num; i++) {
        bool is_in;
        MLAI_TRY(jinja_spend(run->memory, 0, err));
        MLAI_TRY(is_selected(run, how, list->items[i], &is_in, err));
        if (is_in) {
            MLAI_TRY(jinja_list_add(run->memory, out->as.list, list->items[i], err));
        }
    }
    return MLA_OK;
}

mla_status jinja_filter_select(jinja_run *run, jinja_value input,
                               const jinja_arguments *given, jinja_value *out,
                               mla_error *err)
{
    selection how = {.has_attribute = false};
    return apply(run, input, given, &how, out, err);
}

mla_status jinja_filter_reject(jinja_run *run, jinja_value input,
                               const jinja_arguments *given, jinja_value *out,
                               mla_error *err)
{
    selection how = {.is_rejected = true};
    return apply(run, input, given, &how, out, err);
}

mla_status jinja_filter_selectattr(jinja_run *run, jinja_value input,
                                   const jinja_arguments *given, jinja_value *out,
                                   mla_error *err)
{
    selection how = {.has_attribute = true};
    return apply(run, input, given, &how, out, err);
}

mla_status jinja_filter_rejectattr(jinja_run *run, jinja_value input,
                                   const jinja_arguments *given, jinja_value *out,
                                   mla_error *err)
{
    selection how = {.has_attribute = true, .is_rejected = true};
    return apply(run, input, given, &how, out, err);
}

/* map('filter', arguments): given is what follows the name. */
static mla_status map_filter(jinja_run *run, const jinja_list *list,
                             const jinja_arguments *given, jinja_list *out, mla_error *err)
{
    jinja_value name = given->num > 0 ? given->values[0] : jinja_none();
    int32_t filter = name.kind == JINJA_STR ? jinja_filter_find(name.as.text) : -1;
    MLAI_CHECK(filter >= 0, MLA_ERR_UNSUPPORTED, "map: the filter '%.*s' is not supported",
               name.kind == JINJA_STR ? jinja_text_shown(name.as.text) : 1,
               name.kind == JINJA_STR ? name.as.text.data : "?");
    jinja_arguments rest = *given;
    rest.values++;
    rest.num--;
    for (size_t i = 0; i < list->num; i++) {
        jinja_value value;
        MLAI_TRY(jinja_enter(run->memory, err)); /* a map may map */
        MLAI_TRY(jinja_filter_apply(run, filter, list->items[i], &rest, &value, err));
        MLAI_TRY(jinja_list_add(run->memory, out, value, err));
        jinja_leave(run->memory);
    }
    return MLA_OK;
}

mla_status jinja_filter_map(jinja_run *run, jinja_value input, const jinja_arguments *given,
                            jinja_value *out, mla_error *err)
{
    const jinja_list *list;
    jinja_value values[] = {jinja_none(), jinja_undefined(JINJA_TEXT("default"))};
    input = jinja_is_true(input) ? input : jinja_undefined(JINJA_TEXT("")); /* nothing */
    MLAI_TRY(jinja_iterate(run, input, &list, err));
    MLAI_TRY(jinja_list_value(run->memory, JINJA_STREAM, out, err));
    if (given->num > 0) {
        return map_filter(run, list, given, out->as.list, err);
    }
    MLAI_TRY(jinja_bind(given, "attribute default", values, err));
    MLAI_CHECK(values[0].kind != JINJA_NONE, MLA_ERR_ARGUMENT,
               "map takes a filter or an attribute");
    for (size_t i = 0; i < list->num; i++) {
        jinja_value value;
        MLAI_TRY(jinja_follow(run, list->items[i], values[0], &value, err));
        value = value.kind == JINJA_UNDEFINED && values[1].kind != JINJA_UNDEFINED
                    ? values[1]
                    : value;
        MLAI_TRY(jinja_list_add(run->memory, out->as.list, value, err));
    }
    return MLA_OK;
}
