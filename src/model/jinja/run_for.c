/* run_for.c - loops: a scope for each round, and the variable `loop`. */
#include "model/jinja/run.h"

/* One item in a scope of its own; run->scope is the outer one after. */
static mla_status is_wanted(jinja_run *run, const jinja_node *node, jinja_value item,
                            bool *out, mla_error *err)
{
    jinja_scope *outer = run->scope;
    MLAI_TRY(jinja_scope_enter(run, outer, err));
    MLAI_TRY(jinja_assign(run, node->a, item, err));
    MLAI_TRY(jinja_eval_true(run, node->c, out, err));
    run->scope = outer;
    return MLA_OK;
}

/* What the loop's `if` leaves, before the first round: loop.length counts only these. */
static mla_status filter_items(jinja_run *run, const jinja_node *node,
                               const jinja_list **items, mla_error *err)
{
    jinja_list *wanted = NULL;
    MLAI_TRY(jinja_list_make(run->memory, 0, &wanted, err));
    for (size_t i = 0; i < (*items)->num; i++) {
        bool is_in = false;
        MLAI_TRY(is_wanted(run, node, (*items)->items[i], &is_in, err));
        if (is_in) {
            MLAI_TRY(jinja_list_add(run->memory, wanted, (*items)->items[i], err));
        }
    }
    *items = wanted;
    return MLA_OK;
}

static mla_status make_loop(jinja_run *run, const jinja_list *items, jinja_value *out,
                            mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(jinja_take(run->memory, 1, sizeof(jinja_loop), &memory, err));
    *out = (jinja_value){.kind = JINJA_LOOP, .as.loop = memory};
    *out->as.loop = (jinja_loop){.items = items, .depth = run->loop_depth};
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which the parser bounds */
static mla_status run_rounds(jinja_run *run, const jinja_node *node,
                             const jinja_list *items, mla_error *err)
{
    jinja_flow flow = FLOW_ON;
    jinja_scope *outer = run->scope;
    jinja_value loop;
    MLAI_TRY(make_loop(run, items, &loop, err));
    for (size_t i = 0; i < items->num && flow != FLOW_BREAK; i++) {
        flow = FLOW_ON;
        loop.as.loop->index = i;
        MLAI_TRY(jinja_scope_enter(run, outer, err));
        MLAI_TRY(jinja_scope_set(run, JINJA_TEXT("loop"), loop, err));
        MLAI_TRY(jinja_assign(run, node->a, items->items[i], err));
        MLAI_TRY(jinja_run_nodes(run, &node->body, &flow, err));
    }
    run->scope = outer;
    return MLA_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
mla_status jinja_run_for(jinja_run *run, const jinja_node *node, jinja_flow *flow,
                         mla_error *err)
{
    jinja_value value;
    const jinja_list *items;
    MLAI_TRY(jinja_eval(run, node->b, &value, err));
    MLAI_TRY(jinja_iterate(run, value, &items, err));
    MLAI_TRY(node->c ? filter_items(run, node, &items, err) : MLA_OK);
    if (items->num == 0) {
        jinja_scope *outer = run->scope;
        MLAI_TRY(jinja_scope_enter(run, outer, err));
        MLAI_TRY(jinja_run_nodes(run, &node->orelse, flow, err));
        run->scope = outer;
        return MLA_OK;
    }
    run->loop_depth++;
    MLAI_TRY(run_rounds(run, node, items, err));
    run->loop_depth--;
    return MLA_OK;
}
