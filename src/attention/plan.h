/* plan.h - what preparation leaves: a launcher and what follows from the caps. A plan is
 * immutable and counted; it holds no operand of any kind. */
#ifndef MLA_ATTENTION_PLAN_H
#define MLA_ATTENTION_PLAN_H

#include "attention/operands.h"
#include "attention/plan_line.h"

struct mla_plan {
    mla_context *context;
    mlai_geometry geometry;
    size_t workspace_bytes;
    mlai_launcher *launcher; /* owned; NULL until loaded */
    atomic_int num_users;
#ifdef MLA_RETAIN_PRIMING
    mlai_operands kept; /* the defect that the lifetime tests must see: see retain.h */
#endif
};

enum { MLAI_WORKSPACE_ALIGN_BYTES = 64 };

/* One user, no launcher yet. out: owned, mla_plan_release. */
mla_status mlai_plan_new(mla_context *context, const mlai_geometry *geometry,
                         size_t workspace_bytes, mla_plan **out, mla_error *err);

/* The line that mla_plan_describe gives, for caps that are not a plan yet. Returns the bytes
 * that it needs, NUL included. */
size_t mlai_describe(const mla_context *context, const mla_caps *caps, char *text,
                     size_t text_bytes);

#endif
