/* memory.h - what a template may take: bytes that are given back all at once, and steps.
 * Both have limits, because messages are written by strangers. */
#ifndef MLA_MODEL_JINJA_MEMORY_H
#define MLA_MODEL_JINJA_MEMORY_H

#include "model/arena.h"

typedef struct jinja_memory {
    arena arena;
    size_t used_bytes, max_bytes;
    int64_t num_steps, max_steps;
    int32_t depth, max_depth; /* of calls inside calls, ours as well as the template's */
} jinja_memory;

/* Zeroed; num 0 gives a pointer not to be read. MLA_ERR_UNSUPPORTED above the limit. */
mla_status jinja_take(jinja_memory *from, size_t num, size_t item_bytes, void **out,
                      mla_error *err);

/* One step for each thing done, and one for every 64 bytes looked at. */
mla_status jinja_spend(jinja_memory *from, size_t bytes, mla_error *err);

/* One level down, and back. After a failure nobody counts any more. */
mla_status jinja_enter(jinja_memory *from, mla_error *err);
static inline void jinja_leave(jinja_memory *from)
{
    from->depth--;
}

#endif
