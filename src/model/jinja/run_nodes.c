/* run_nodes.c - statements, one after the other. */
#include "model/jinja/run.h"

mla_status jinja_run_captured(jinja_run *run, const jinja_nodes *body, jinja_value *out,
                              mla_error *err)
{
    jinja_flow flow = FLOW_ON;
    jinja_builder *outer = run->out;
    jinja_scope *scope = run->scope;
    jinja_builder text = {.memory = run->memory, .max_bytes = run->max_output_bytes};
    run->out = &text;
    mla_status status = jinja_scope_enter(run, scope, err);
    if (status == MLA_OK) {
        status = jinja_run_nodes(run, body, &flow, err);
    }
    run->out = outer;
    run->scope = scope;
    *out = jinja_str(jinja_builder_text(&text));
    return status;
}

static mla_status assign_namespace(jinja_run *run, const jinja_node *target,
                                   jinja_value value, mla_error *err)
{
    jinja_value object;
    MLAI_TRY(jinja_eval(run, target->a, &object, err));
    MLAI_CHECK(object.kind == JINJA_NAMESPACE, MLA_ERR_ARGUMENT,
               "'%.*s.%.*s' is set, and '%.*s' is a %s and no namespace",
               JINJA_SHOWN(target->a->name), JINJA_SHOWN(target->name),
               JINJA_SHOWN(target->a->name), jinja_kind_name(object.kind));
    return jinja_dict_set(run->memory, object.as.dict, jinja_str(target->name), value, err);
}

mla_status jinja_assign(jinja_run *run, const jinja_node *target, jinja_value value,
                        mla_error *err)
{
    if (target->kind == NODE_NAME) {
        return jinja_scope_set(run, target->name, value, err);
    }
    if (target->kind == NODE_ATTRIBUTE) {
        return assign_namespace(run, target, value, err);
    }
    const jinja_list *list;
    size_t i = 0;
    MLAI_TRY(jinja_iterate(run, value, &list, err));
    MLAI_CHECK(list->num == (size_t)target->items.num, MLA_ERR_ARGUMENT,
               "%zu values are unpacked into %d names", list->num, (int)target->items.num);
    for (const jinja_node *name = target->items.first; name; name = name->next) {
        MLAI_TRY(jinja_scope_set(run, name->name, list->items[i++], err));
    }
    return MLA_OK;
}

static mla_status run_print(jinja_run *run, const jinja_node *node, mla_error *err)
{
    jinja_value value;
    MLAI_TRY(jinja_eval(run, node->a, &value, err));
    return jinja_print(run->out, value, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status run_if(jinja_run *run, const jinja_node *node, jinja_flow *flow,
                         mla_error *err)
{
    bool is_true;
    MLAI_TRY(jinja_eval_true(run, node->a, &is_true, err));
    return jinja_run_nodes(run, is_true ? &node->body : &node->orelse, flow, err);
}

static mla_status run_set(jinja_run *run, const jinja_node *node, mla_error *err)
{
    jinja_value value;
    MLAI_TRY(jinja_eval(run, node->b, &value, err));
    return jinja_assign(run, node->a, value, err);
}

/* The body as a text, through the filters. NOLINTNEXTLINE(misc-no-recursion) */
static mla_status run_filtered(jinja_run *run, const jinja_node *node, jinja_value *out,
                               mla_error *err)
{
    jinja_value text;
    MLAI_TRY(jinja_run_captured(run, &node->body, &text, err));
    *out = text;
    return node->b ? jinja_eval_filter(run, node->b, &text, out, err) : MLA_OK;
}

static mla_status make_macro(jinja_run *run, const jinja_node *node, jinja_value *out,
                             mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(jinja_take(run->memory, 1, sizeof(jinja_macro), &memory, err));
    *out = (jinja_value){.kind = JINJA_MACRO, .as.macro = memory};
    *out->as.macro = (jinja_macro){.node = node, .scope = run->scope};
    return MLA_OK;
}

/* {% call f(x) %}: f(x, caller=the body) */
static mla_status run_caller(jinja_run *run, const jinja_node *node, mla_error *err)
{
    static const jinja_text name = {.data = "caller", .bytes = 6};
    jinja_value callee;
    jinja_value caller;
    jinja_value result;
    jinja_arguments given;
    MLAI_TRY(make_macro(run, node, &caller, err));
    MLAI_TRY(jinja_eval(run, node->a->a, &callee, err));
    MLAI_TRY(jinja_eval_arguments(run, &node->a->items, "the call", &given, err));
    MLAI_CHECK(callee.kind == JINJA_MACRO && given.num_named == 0, MLA_ERR_UNSUPPORTED,
               "'call' is supported for macros and arguments without names, not for a %s",
               jinja_kind_name(callee.kind));
    given.names = &name;
    given.named = &caller;
    given.num_named = 1;
    MLAI_TRY(jinja_call(run, callee, &given, &result, err));
    return jinja_print(run->out, result, err);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which the parser bounds */
static mla_status run_block(jinja_run *run, const jinja_node *node, mla_error *err)
{
    jinja_value value;
    MLAI_TRY(run_filtered(run, node, &value, err));
    return node->kind == NODE_SET_BLOCK ? jinja_assign(run, node->a, value, err)
                                        : jinja_print(run->out, value, err);
}

static mla_status run_macro(jinja_run *run, const jinja_node *node, mla_error *err)
{
    jinja_value macro;
    MLAI_TRY(make_macro(run, node, &macro, err));
    return jinja_scope_set(run, node->name, macro, err);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static mla_status run_node(jinja_run *run, const jinja_node *node, jinja_flow *flow,
                           mla_error *err)
{
    MLAI_TRY(jinja_spend(run->memory, 0, err));
    switch ((int)node->kind) {
    case NODE_DATA:
        return jinja_print(run->out, node->constant, err);
    case NODE_PRINT:
        return run_print(run, node, err);
    case NODE_IF:
        return run_if(run, node, flow, err);
    case NODE_FOR:
        return jinja_run_for(run, node, flow, err);
    case NODE_SET:
        return run_set(run, node, err);
    case NODE_SET_BLOCK:
    case NODE_FILTERED:
    case NODE_SCOPE:
        return run_block(run, node, err);
    case NODE_MACRO:
        return run_macro(run, node, err);
    case NODE_CALLER:
        return run_caller(run, node, err);
    case NODE_BREAK:
        *flow = FLOW_BREAK;
        return MLA_OK;
    default:
        *flow = FLOW_CONTINUE;
        return MLA_OK;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_run_nodes(jinja_run *run, const jinja_nodes *nodes, jinja_flow *flow,
                           mla_error *err)
{
    MLAI_TRY(jinja_enter(run->memory, err));
    for (const jinja_node *node = nodes->first; node && *flow == FLOW_ON;
         node = node->next) {
        mla_status status = run_node(run, node, flow, err);
        if (status != MLA_OK) {
            run->bad_line = run->bad_line ? run->bad_line : node->line;
            return status;
        }
    }
    jinja_leave(run->memory);
    return MLA_OK;
}
