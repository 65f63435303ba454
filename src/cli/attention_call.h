/* attention_call.h - a plan with all the buffers that it wants, bound and ready to run. */
#ifndef MLA_CLI_ATTENTION_CALL_H
#define MLA_CLI_ATTENTION_CALL_H

#include "mla/mla.h"

/* A buffer as the plan wants it. */
typedef struct operand {
    void *data;
    size_t bytes;
    mla_purpose purpose;
} operand;

typedef struct attention_call {
    mla_context *context;
    mla_plan *plan;
    mla_binding *binding;
    operand kv_pool, query, output, lse;
    operand block_table, context_lens, query_starts, workspace;
} attention_call;

/* call: {.context} before; whatever comes, attention_call_free. The buffers' contents are
 * undefined. */
mla_status attention_call_plan(attention_call *call, const mla_caps *caps, mla_error *err);

/* kv_scale, query_scale: one f32 each, borrowed until free; NULL where the format has none. */
mla_status attention_call_bind(attention_call *call, const float *kv_scale,
                               const float *query_scale, mla_error *err);

/* Writes rows [first, first + num) of the pool, from rows [num][D+R] f32. */
mla_status attention_call_append(const attention_call *call, const float *rows,
                                 size_t row_bytes, int64_t first, int64_t num,
                                 const float *kv_scale, mla_error *err);

void attention_call_free(attention_call *call);

#endif
