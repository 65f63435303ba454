/* attention_call.h - a plan with all the buffers that it wants, bound and ready to run, on
 * the device of its context. */
#ifndef MLA_CLI_ATTENTION_CALL_H
#define MLA_CLI_ATTENTION_CALL_H

#include "cli/operand.h"

typedef struct attention_call {
    mla_context *context;
    mla_plan *plan;
    mla_binding *binding;
    operand query, block_table, context_lens, query_starts; /* filled on the host side */
    operand output, lse;                                    /* read there */
    operand kv_pool, workspace;                             /* without a host side */
    operand kv_scale, query_scale;                          /* empty where there is none */
    operand rows, slots;                                    /* what append reads */
} attention_call;

/* call: {.context} before; whatever comes, attention_call_free. The buffers' contents are
 * undefined. */
mla_status attention_call_plan(attention_call *call, const mla_caps *caps, mla_error *err);

/* The same with a plan that there is: retained until free. caps: what it was made from. A
 * kv_pool that is there already is used; who put it there takes it away before free. */
mla_status attention_call_open(attention_call *call, mla_plan *plan, const mla_caps *caps,
                               mla_error *err);

/* For callers with bindings of their own: the scales, and what there is to bind. */
mla_status attention_call_scales(attention_call *call, const float *kv_scale,
                                 const float *query_scale, mla_error *err);
mla_buffers attention_call_buffers(const attention_call *call);

/* kv_scale, query_scale: one f32 each, read; NULL where the format has none. Before append
 * where there is a kv_scale. */
mla_status attention_call_bind(attention_call *call, const float *kv_scale,
                               const float *query_scale, mla_error *err);

/* Writes rows [first, first + num) of the pool, from rows [num][D+R] f32, on the host. */
mla_status attention_call_append(attention_call *call, const float *rows, int64_t first,
                                 int64_t num, mla_error *err);

/* Host sides to the device: query, table, lengths, starts. And output and lse back, after
 * all that was run on the null stream. */
mla_status attention_call_send(const attention_call *call, mla_error *err);
mla_status attention_call_fetch(const attention_call *call, mla_error *err);

void attention_call_free(attention_call *call);

#endif
