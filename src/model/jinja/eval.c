/* eval.c - expressions to values. */
#include "model/jinja/run.h"

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_eval_true(jinja_run *run, const jinja_node *node, bool *out,
                           mla_error *err)
{
    jinja_value value = jinja_none();
    MLAI_TRY(jinja_eval(run, node, &value, err));
    *out = jinja_is_true(value);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the memory allows */
static mla_status eval_list(jinja_run *run, const jinja_node *node, jinja_value *out,
                            mla_error *err)
{
    out->kind = node->kind == NODE_LIST ? JINJA_LIST : JINJA_TUPLE;
    jinja_list *list = NULL;
    MLAI_TRY(jinja_list_make(run->memory, (size_t)node->items.num, &list, err));
    for (const jinja_node *item = node->items.first; item; item = item->next) {
        jinja_value value;
        MLAI_TRY(jinja_eval(run, item, &value, err));
        MLAI_TRY(jinja_list_add(run->memory, list, value, err));
    }
    out->as.list = list;
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_dict(jinja_run *run, const jinja_node *node, jinja_value *out,
                            mla_error *err)
{
    jinja_dict *dict = NULL;
    MLAI_TRY(jinja_dict_make(run->memory, (size_t)node->items.num / 2, &dict, err));
    for (const jinja_node *item = node->items.first; item; item = item->next->next) {
        jinja_value key;
        jinja_value value;
        MLAI_TRY(jinja_eval(run, item, &key, err));
        MLAI_TRY(jinja_eval(run, item->next, &value, err));
        MLAI_TRY(jinja_dict_set(run->memory, dict, key, value, err));
    }
    *out = (jinja_value){.kind = JINJA_DICT, .as.dict = dict};
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_attribute(jinja_run *run, const jinja_node *node, jinja_value *out,
                                 mla_error *err)
{
    jinja_value value;
    jinja_value key;
    MLAI_TRY(jinja_eval(run, node->a, &value, err));
    if (node->kind == NODE_ATTRIBUTE) {
        return jinja_attribute(run, value, node->name, out, err);
    }
    MLAI_TRY(jinja_eval(run, node->b, &key, err));
    return jinja_index(run, value, key, out, err);
}

/* `and` and `or` give one of their sides. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_logic(jinja_run *run, const jinja_node *node, jinja_value *out,
                             mla_error *err)
{
    MLAI_TRY(jinja_eval(run, node->a, out, err));
    bool is_decided = jinja_is_true(*out) == (node->kind == NODE_OR);
    return is_decided ? MLA_OK : jinja_eval(run, node->b, out, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_not(jinja_run *run, const jinja_node *node, jinja_value *out,
                           mla_error *err)
{
    bool is_true;
    MLAI_TRY(jinja_eval_true(run, node->a, &is_true, err));
    *out = jinja_bool(!is_true);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_conditional(jinja_run *run, const jinja_node *node, jinja_value *out,
                                   mla_error *err)
{
    bool is_true;
    MLAI_TRY(jinja_eval_true(run, node->a, &is_true, err));
    return jinja_eval(run, is_true ? node->b : node->c, out, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_sign(jinja_run *run, const jinja_node *node, jinja_value *out,
                            mla_error *err)
{
    jinja_value value;
    MLAI_TRY(jinja_eval(run, node->a, &value, err));
    MLAI_CHECK(jinja_is_number(value), MLA_ERR_ARGUMENT, "a %s has no sign",
               jinja_kind_name(value.kind));
    if (node->kind == NODE_NEGATIVE && value.kind == JINJA_FLOAT) {
        *out = jinja_float(-value.as.real);
        return MLA_OK;
    }
    jinja_operator op = node->kind == NODE_NEGATIVE ? OPERATOR_SUBTRACT : OPERATOR_ADD;
    return jinja_combine(run, op, jinja_int(0), value, out, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_test(jinja_run *run, const jinja_node *node, jinja_value *out,
                            mla_error *err)
{
    bool is_so = false;
    jinja_value input;
    jinja_arguments given;
    MLAI_TRY(jinja_eval(run, node->a, &input, err));
    MLAI_TRY(jinja_eval_arguments(run, &node->items, "a test", &given, err));
    MLAI_TRY(jinja_test_apply(run, node->op, input, &given, &is_so, err));
    *out = jinja_bool(is_so);
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval_operator(jinja_run *run, const jinja_node *node, jinja_value *out,
                                mla_error *err)
{
    switch ((int)node->kind) {
    case NODE_NOT:
        return eval_not(run, node, out, err);
    case NODE_AND:
    case NODE_OR:
        return eval_logic(run, node, out, err);
    case NODE_CONDITIONAL:
        return eval_conditional(run, node, out, err);
    case NODE_COMPARE:
        return jinja_eval_compare(run, node, out, err);
    case NODE_BINARY:
        return jinja_eval_binary(run, node, out, err);
    default:
        return eval_sign(run, node, out, err);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status eval(jinja_run *run, const jinja_node *node, jinja_value *out,
                       mla_error *err)
{
    switch ((int)node->kind) {
    case NODE_CONSTANT:
        *out = node->constant;
        return MLA_OK;
    case NODE_NAME:
        return jinja_scope_get(run, node->name, out, err);
    case NODE_LIST:
    case NODE_TUPLE:
        return eval_list(run, node, out, err);
    case NODE_DICT:
        return eval_dict(run, node, out, err);
    case NODE_ATTRIBUTE:
    case NODE_INDEX:
        return eval_attribute(run, node, out, err);
    case NODE_SLICE:
        return jinja_eval_slice(run, node, out, err);
    case NODE_CALL:
        return jinja_eval_call(run, node, out, err);
    case NODE_FILTER:
        return jinja_eval_filter(run, node, NULL, out, err);
    case NODE_TEST:
        return eval_test(run, node, out, err);
    default:
        return eval_operator(run, node, out, err);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_eval(jinja_run *run, const jinja_node *node, jinja_value *out,
                      mla_error *err)
{
    jinja_value value = jinja_none();
    if (!node) {
        *out = jinja_undefined(JINJA_TEXT("the value of an if without else"));
        return MLA_OK;
    }
    MLAI_TRY(jinja_enter(run->memory, err));
    MLAI_TRY(jinja_spend(run->memory, 0, err));
    mla_status status = eval(run, node, &value, err);
    if (status != MLA_OK) {
        run->bad_line = run->bad_line ? run->bad_line : node->line;
        return status;
    }
    *out = value;
    jinja_leave(run->memory);
    return MLA_OK;
}
