/* eval_call.c - calls of functions, methods, macros and filters. */
#include "model/jinja/run.h"

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
mla_status jinja_eval_arguments(jinja_run *run, const jinja_nodes *items,
                                const char *callee, jinja_arguments *out, mla_error *err)
{
    void *values = NULL;
    void *names = NULL;
    size_t num = (size_t)items->num;
    MLAI_TRY(jinja_take(run->memory, num, sizeof(jinja_value), &values, err));
    MLAI_TRY(jinja_take(run->memory, num, sizeof(jinja_text), &names, err));
    jinja_value *value = values;
    jinja_text *name = names;
    *out = (jinja_arguments){.values = value, .names = name, .callee = callee};
    for (const jinja_node *item = items->first; item; item = item->next) {
        bool is_named = item->kind == NODE_KEYWORD;
        MLAI_TRY(jinja_eval(run, is_named ? item->a : item, value, err));
        value++;
        out->num += !is_named;
        if (is_named) {
            name[out->num_named++] = item->name;
        }
    }
    out->named = out->values + out->num;
    return MLA_OK;
}

static bool takes(const char *parameters, int32_t index, jinja_text name)
{
    jinja_text all = jinja_text_of(parameters);
    size_t at = 0;
    for (; index > 0; index--) {
        at = jinja_text_find(all, JINJA_TEXT(" "), at) + 1;
    }
    size_t end = jinja_text_find(all, JINJA_TEXT(" "), at);
    return jinja_text_equal(jinja_text_part(all, at, end == SIZE_MAX ? all.bytes : end),
                            name);
}

static int32_t num_parameters(const char *parameters)
{
    int32_t num = *parameters != '\0';
    for (; *parameters; parameters++) {
        num += *parameters == ' ';
    }
    return num;
}

mla_status jinja_bind(const jinja_arguments *given, const char *parameters,
                      jinja_value *out, mla_error *err)
{
    int32_t num = num_parameters(parameters);
    MLAI_CHECK(given->num <= num, MLA_ERR_ARGUMENT, "%s takes at most %d arguments, not %d",
               given->callee, (int)num, (int)given->num);
    for (int32_t i = 0; i < given->num; i++) {
        out[i] = given->values[i];
    }
    for (int32_t i = 0; i < given->num_named; i++) {
        int32_t at = 0;
        while (at < num && !takes(parameters, at, given->names[i])) {
            at++;
        }
        MLAI_CHECK(at < num && at >= given->num, MLA_ERR_ARGUMENT,
                   "%s takes no argument '%.*s' here", given->callee,
                   JINJA_SHOWN(given->names[i]));
        out[at] = given->named[i];
    }
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_eval_filter(jinja_run *run, const jinja_node *node,
                             const jinja_value *input, jinja_value *out, mla_error *err)
{
    jinja_value value = jinja_none();
    jinja_arguments given;
    if (node->kind != NODE_FILTER) {
        return MLAI_FAIL(MLA_ERR_UNSUPPORTED, "a block goes through filters only");
    }
    if (node->a && input) {
        MLAI_TRY(jinja_eval_filter(run, node->a, input, &value, err));
    } else if (node->a) {
        MLAI_TRY(jinja_eval(run, node->a, &value, err));
    } else {
        value = *input;
    }
    MLAI_TRY(jinja_eval_arguments(run, &node->items, "the filter", &given, err));
    return jinja_filter_apply(run, node->op, value, &given, out, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_eval_call(jinja_run *run, const jinja_node *node, jinja_value *out,
                           mla_error *err)
{
    jinja_value callee;
    jinja_arguments given;
    MLAI_TRY(jinja_eval(run, node->a, &callee, err));
    MLAI_TRY(jinja_eval_arguments(run, &node->items, "the function", &given, err));
    return jinja_call(run, callee, &given, out, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_call(jinja_run *run, jinja_value callee, const jinja_arguments *given,
                      jinja_value *out, mla_error *err)
{
    switch ((int)callee.kind) {
    case JINJA_MACRO:
        return jinja_call_macro(run, callee.as.macro, given, out, err);
    case JINJA_GLOBAL:
        return jinja_global_call(run, callee.as.global, given, out, err);
    case JINJA_METHOD:
        return jinja_method_call(run, callee.as.method, given, out, err);
    case JINJA_UNDEFINED:
        return MLAI_FAIL(MLA_ERR_ARGUMENT, "'%.*s' is undefined, and called",
                         JINJA_SHOWN(callee.as.text));
    default:
        return MLAI_FAIL(MLA_ERR_ARGUMENT, "a %s is called, and is no function",
                         jinja_kind_name(callee.kind));
    }
}

static const jinja_value *named(const jinja_arguments *given, jinja_text name)
{
    for (int32_t i = 0; i < given->num_named; i++) {
        if (jinja_text_equal(given->names[i], name)) {
            return &given->named[i];
        }
    }
    return NULL;
}

/* The parameters of a macro in its new scope: given, by name, its default, or undefined. */
static mla_status set_parameters(jinja_run *run, const jinja_node *node,
                                 const jinja_arguments *given, mla_error *err)
{
    int32_t index = 0;
    int32_t num_named = 0;
    for (const jinja_node *name = node->items.first; name; name = name->next, index++) {
        jinja_value value = jinja_undefined(name->name);
        const jinja_value *by_name = named(given, name->name);
        MLAI_CHECK(!by_name || index >= given->num, MLA_ERR_ARGUMENT,
                   "the macro '%.*s' gets '%.*s' twice", JINJA_SHOWN(node->name),
                   JINJA_SHOWN(name->name));
        num_named += by_name != NULL;
        if (index < given->num) {
            value = given->values[index];
        } else if (by_name) {
            value = *by_name;
        } else if (name->a) {
            MLAI_TRY(jinja_eval(run, name->a, &value, err));
        }
        MLAI_TRY(jinja_scope_set(run, name->name, value, err));
    }
    const jinja_value *caller = named(given, JINJA_TEXT("caller"));
    if (caller) {
        MLAI_TRY(jinja_scope_set(run, JINJA_TEXT("caller"), *caller, err));
    }
    MLAI_CHECK(given->num <= index && num_named + (caller != NULL) >= given->num_named,
               MLA_ERR_ARGUMENT,
               "the macro '%.*s' takes %d arguments, and gets others or more",
               JINJA_SHOWN(node->name), (int)index);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_call_macro(jinja_run *run, const jinja_macro *macro,
                            const jinja_arguments *given, jinja_value *out, mla_error *err)
{
    jinja_scope *scope = run->scope;
    MLAI_TRY(jinja_scope_enter(run, macro->scope, err));
    MLAI_TRY(set_parameters(run, macro->node, given, err));
    MLAI_TRY(jinja_run_captured(run, &macro->node->body, out, err));
    run->scope = scope;
    return MLA_OK;
}
