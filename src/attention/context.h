/* context.h - one device: its ledger, its threads, its log, and how many objects made from
 * it are alive. Rooms above may use the ledger and the pool. */
#ifndef MLA_ATTENTION_CONTEXT_H
#define MLA_ATTENTION_CONTEXT_H

#include "base/ledger.h"
#include "device/pool.h"

struct mla_context {
    mlai_ledger ledger;
    mla_backend backend;
    int32_t device;
    uint32_t isa_mask; /* what this context may use: never more than the device has */
    mlai_pool *pool;
    void (*log)(void *user, mla_log_level level, const char *line);
    void *log_user;
    mla_log_level log_level;
    atomic_int num_sessions; /* open ones: the freeze waits for none */
    atomic_int num_children; /* sessions, plans, bindings */
};

static inline mlai_ledger *mlai_context_ledger(mla_context *context)
{
    return &context->ledger;
}

static inline mlai_pool *mlai_context_pool(mla_context *context)
{
    return context->pool;
}

#endif
