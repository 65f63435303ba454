/* json_memory.c - jansson's memory, paid by the ledger of the scope. */
#include <setjmp.h>

#include "base/size.h"
#include "model/json.h"

/* Why a thread-local: the hooks have no parameter that could carry the ledger. It is set
 * for the length of a scope only, and nothing reads it but the hook. */
static _Thread_local json_scope current_scope;
static mlai_ledger process_ledger;

typedef struct json_label {
    _Alignas(16) mlai_ledger *ledger;
    struct json_label *next;  /* of the same attempt */
    struct json_label **link; /* what points to this one; NULL: in no attempt */
} json_label;

/* One parse. jansson's lexer does not look whether its text could grow, and then trips over
 * an assertion of its own: so it is not gone back to. All that it had is released here. */
typedef struct json_attempt {
    jmp_buf way_out;
    json_label *blocks;
} json_attempt;

static void enlist(json_attempt *attempt, json_label *label)
{
    label->next = attempt->blocks;
    label->link = &attempt->blocks;
    if (label->next) {
        label->next->link = &label->next;
    }
    attempt->blocks = label;
}

static void delist(json_label *label)
{
    if (label->link) {
        *label->link = label->next;
        if (label->next) {
            label->next->link = label->link;
        }
    }
}

static void *hook_alloc(size_t bytes)
{
    mlai_ledger *ledger = current_scope.ledger;
    mla_purpose purpose = current_scope.purpose;
    json_label *label = NULL;
    size_t whole;
    if (!ledger) {
        ledger = &process_ledger;
        purpose = MLA_FOR_OTHER;
    }
    if (mlai_size_add(bytes, sizeof(json_label), &whole)) {
        label = mlai_ledger_hook_alloc(ledger, purpose, whole);
    }
    if (!label) {
        current_scope.has_failed = true;
        if (current_scope.attempt) {
            longjmp(current_scope.attempt->way_out, 1);
        }
        return NULL;
    }
    *label = (json_label){.ledger = ledger};
    if (current_scope.attempt) {
        enlist(current_scope.attempt, label);
    }
    return label + 1;
}

static void hook_free(void *data)
{
    if (data) {
        json_label *label = (json_label *)data - 1;
        delist(label);
        mlai_ledger_hook_free(label->ledger, label);
    }
}

/* What was parsed outlives the attempt. */
static void keep_blocks(json_attempt *attempt)
{
    for (json_label *label = attempt->blocks; label; label = label->next) {
        label->link = NULL;
    }
}

static void release_blocks(json_attempt *attempt)
{
    while (attempt->blocks) {
        hook_free(attempt->blocks + 1);
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

json_t *json_scope_parse(const char *text, size_t bytes, size_t flags, json_error_t *error)
{
    json_attempt attempt;
    json_t *root = NULL;
    attempt.blocks = NULL;
    if (setjmp(attempt.way_out) != 0) {
        current_scope.attempt = NULL;
        release_blocks(&attempt);
        return NULL;
    }
    current_scope.attempt = &attempt;
    root = json_loadb(text, bytes, flags, error);
    current_scope.attempt = NULL;
    keep_blocks(&attempt);
    return root;
}
