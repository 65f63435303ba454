/* binding.h - a plan and the caller's buffers, checked once. */
#ifndef MLA_ATTENTION_BINDING_H
#define MLA_ATTENTION_BINDING_H

#include "attention/plan.h"

struct mla_binding {
    mla_plan *plan;      /* owned: one user */
    mla_buffers buffers; /* full size; what it points to is the caller's */
    mlai_graph *graph;   /* owned; NULL until recorded */
    mlai_mark *mark;     /* owned */
};

/* Everything that bind refuses: sizes, alignment, scales, overlap. buffers: full size. */
mla_status mlai_buffers_check(const mla_plan *plan, const mla_buffers *buffers,
                              mla_error *err);

#endif
