/* context.h - one device: its ledger, its threads, its log, and how many objects made from
 * it are alive. Rooms above may use the ledger and the pool. */
#ifndef MLA_ATTENTION_CONTEXT_H
#define MLA_ATTENTION_CONTEXT_H

#include <pthread.h>

#include "attention/backend.h"
#include "base/ledger.h"
#include "device/pool.h"

struct mla_context {
    mlai_ledger ledger;
    mla_backend backend;
    const mlai_backend *ops;
    void *ops_state; /* the backend's own, from open to shut */
    int32_t device;
    int32_t num_threads;
    uint32_t isa_mask; /* what this context may use: never more than the device has */
    mlai_pool *pool;
    void (*log)(void *user, mla_log_level level, const char *line);
    void *log_user;
    mla_log_level log_level;
    uint64_t own_bytes; /* of class context, host, when create returned */
    _Atomic uint64_t
        booked_bytes[MLA_NUM_SPACES][MLA_NUM_PURPOSES]; /* by mla_memory_book */
    pthread_mutex_t gate;    /* held while a session opens and while the freeze looks */
    int32_t num_sessions;    /* under gate: open ones; the freeze waits for none */
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

static inline bool mlai_context_is_frozen(const mla_context *context)
{
    return atomic_load(&context->ledger.is_frozen);
}

/* One line, if the context has a log that wants this level. */
void mlai_context_log(const mla_context *context, mla_log_level level, const char *format,
                      ...) __attribute__((format(printf, 3, 4)));

#endif
