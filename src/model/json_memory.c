/* json_memory.c - jansson's memory, paid by the ledger of the scope. */
#include "base/size.h"
#include "model/json.h"

/* Why a thread-local: the hooks have no parameter that could carry the ledger. It is set
 * for the length of a scope only, and nothing reads it but the hook. */
static _Thread_local json_scope current_scope;
static mlai_ledger process_ledger;

typedef struct json_label {
    _Alignas(16) mlai_ledger *ledger;
} json_label;

static void *hook_alloc(size_t bytes)
{
    mlai_ledger *ledger = current_scope.ledger;
    mla_purpose purpose = current_scope.purpose;
    if (!ledger) {
        ledger = &process_ledger;
        purpose = MLA_FOR_OTHER;
    }
    size_t whole;
    if (!mlai_size_add(bytes, sizeof(json_label), &whole)) {
        return NULL;
    }
    json_label *label = mlai_ledger_hook_alloc(ledger, purpose, whole);
    if (!label) {
        current_scope.has_failed = true;
        return NULL;
    }
    label->ledger = ledger;
    return label + 1;
}

static void hook_free(void *data)
{
    if (data) {
        json_label *label = (json_label *)data - 1;
        mlai_ledger_hook_free(label->ledger, label);
    }
}

/* Before main, so that no value is ever made by one allocator and released by another. */
__attribute__((constructor)) static void set_hooks(void)
{
    (void)mlai_ledger_init(&process_ledger, NULL, 0, NULL);
    json_set_alloc_funcs(hook_alloc, hook_free);
}

json_scope json_scope_enter(mlai_ledger *ledger, mla_purpose purpose)
{
    json_scope before = current_scope;
    current_scope = (json_scope){.ledger = ledger, .purpose = purpose};
    return before;
}

void json_scope_leave(json_scope before)
{
    current_scope = before;
}

bool json_scope_has_failed(void)
{
    return current_scope.has_failed;
}
