/* run.h - one rendering: walking the tree. Statements are in run_*.c, expressions in
 * eval_*.c. */
#ifndef MLA_MODEL_JINJA_RUN_H
#define MLA_MODEL_JINJA_RUN_H

#include "model/jinja/filters.h"
#include "model/jinja/node.h"

typedef struct jinja_variable {
    jinja_text name;
    jinja_value value;
    struct jinja_variable *next;
} jinja_variable;

/* Where names live; a lookup goes outwards. Scopes stay until the rendering ends, so that a
 * macro may keep the one it was made in. */
typedef struct jinja_scope {
    jinja_variable *first;
    struct jinja_scope *outer;
} jinja_scope;

struct jinja_macro {
    const jinja_node *node; /* NODE_MACRO or NODE_CALLER */
    jinja_scope *scope;
};

typedef enum jinja_flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } jinja_flow;

typedef struct jinja_run {
    jinja_memory *memory;
    jinja_scope *scope;
    jinja_builder *out;
    size_t max_output_bytes;
    int32_t bad_line; /* where it failed: of the innermost node */
    int32_t loop_depth;
    int64_t now_seconds; /* for strftime_now */
} jinja_run;

mla_status jinja_scope_enter(jinja_run *run, jinja_scope *outer, mla_error *err);
/* In the innermost scope. */
mla_status jinja_scope_set(jinja_run *run, jinja_text name, jinja_value value,
                           mla_error *err);
/* Of any scope, then the environment's functions; else undefined. */
mla_status jinja_scope_get(jinja_run *run, jinja_text name, jinja_value *out,
                           mla_error *err);

mla_status jinja_run_nodes(jinja_run *run, const jinja_nodes *nodes, jinja_flow *flow,
                           mla_error *err);
mla_status jinja_run_for(jinja_run *run, const jinja_node *node, jinja_flow *flow,
                         mla_error *err);
/* The body's output as a text, in a scope of its own. */
mla_status jinja_run_captured(jinja_run *run, const jinja_nodes *body, jinja_value *out,
                              mla_error *err);
mla_status jinja_assign(jinja_run *run, const jinja_node *target, jinja_value value,
                        mla_error *err);

/* node NULL: undefined */
mla_status jinja_eval(jinja_run *run, const jinja_node *node, jinja_value *out,
                      mla_error *err);
mla_status jinja_eval_true(jinja_run *run, const jinja_node *node, bool *out,
                           mla_error *err);
mla_status jinja_eval_binary(jinja_run *run, const jinja_node *node, jinja_value *out,
                             mla_error *err);
mla_status jinja_eval_compare(jinja_run *run, const jinja_node *node, jinja_value *out,
                              mla_error *err);
mla_status jinja_eval_slice(jinja_run *run, const jinja_node *node, jinja_value *out,
                            mla_error *err);
mla_status jinja_eval_call(jinja_run *run, const jinja_node *node, jinja_value *out,
                           mla_error *err);
/* input: what the innermost filter of a block gets; NULL: node->a of each. */
mla_status jinja_eval_filter(jinja_run *run, const jinja_node *node,
                             const jinja_value *input, jinja_value *out, mla_error *err);
mla_status jinja_eval_arguments(jinja_run *run, const jinja_nodes *items,
                                const char *callee, jinja_arguments *out, mla_error *err);

/* a OP b */
mla_status jinja_combine(jinja_run *run, jinja_operator op, jinja_value a, jinja_value b,
                         jinja_value *out, mla_error *err);
/* a[key]: a missing one is undefined. value.name: methods first. */
mla_status jinja_index(jinja_run *run, jinja_value value, jinja_value key, jinja_value *out,
                       mla_error *err);
mla_status jinja_attribute(jinja_run *run, jinja_value value, jinja_text name,
                           jinja_value *out, mla_error *err);
mla_status jinja_contains(jinja_run *run, jinja_value whole, jinja_value part, bool *out,
                          mla_error *err);

/* What iter() gives: characters of a text, keys of a dict. A stream is used up. */
mla_status jinja_iterate(jinja_run *run, jinja_value value, const jinja_list **out,
                         mla_error *err);

mla_status jinja_call(jinja_run *run, jinja_value callee, const jinja_arguments *given,
                      jinja_value *out, mla_error *err);
mla_status jinja_call_macro(jinja_run *run, const jinja_macro *macro,
                            const jinja_arguments *given, jinja_value *out, mla_error *err);
/* Whether a value of that kind has the method; then *out is bound to it. */
mla_status jinja_method_find(jinja_run *run, jinja_value self, jinja_text name,
                             jinja_value *out, bool *is_there, mla_error *err);
mla_status jinja_method_call(jinja_run *run, const jinja_method *method,
                             const jinja_arguments *given, jinja_value *out,
                             mla_error *err);
/* -1: no function of that name */
int32_t jinja_global_find(jinja_text name);
const char *jinja_global_name(int32_t global);
mla_status jinja_global_call(jinja_run *run, int32_t global, const jinja_arguments *given,
                             jinja_value *out, mla_error *err);

#endif
