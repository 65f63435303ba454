/* scope.c - names and their values. */
#include "model/jinja/run.h"

mla_status jinja_scope_enter(jinja_run *run, jinja_scope *outer, mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(jinja_take(run->memory, 1, sizeof(jinja_scope), &memory, err));
    run->scope = memory;
    run->scope->outer = outer;
    return MLA_OK;
}

static jinja_variable *find(const jinja_scope *scope, jinja_text name)
{
    jinja_variable *variable = scope->first;
    while (variable && !jinja_text_equal(variable->name, name)) {
        variable = variable->next;
    }
    return variable;
}

mla_status jinja_scope_set(jinja_run *run, jinja_text name, jinja_value value,
                           mla_error *err)
{
    jinja_variable *variable = find(run->scope, name);
    if (!variable) {
        void *memory = NULL;
        MLAI_TRY(jinja_take(run->memory, 1, sizeof(jinja_variable), &memory, err));
        variable = memory;
        *variable = (jinja_variable){.name = name, .next = run->scope->first};
        run->scope->first = variable;
    }
    variable->value = value;
    return MLA_OK;
}

mla_status jinja_scope_get(jinja_run *run, jinja_text name, jinja_value *out,
                           mla_error *err)
{
    for (const jinja_scope *scope = run->scope; scope; scope = scope->outer) {
        const jinja_variable *variable = find(scope, name);
        MLAI_TRY(jinja_spend(run->memory, 0, err));
        if (variable) {
            *out = variable->value;
            return MLA_OK;
        }
    }
    int32_t global = jinja_global_find(name);
    *out = global >= 0 ? (jinja_value){.kind = JINJA_GLOBAL, .as.global = global}
                       : jinja_undefined(name);
    return MLA_OK;
}
