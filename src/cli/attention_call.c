/* attention_call.c - plan, buffers and binding in one: see attention_call.h. */
#include "cli/attention_call.h"

#include <string.h>

#include "attention/context.h"
#include "base/status.h"

enum { APPEND_ROWS = 64 };

static mla_status make_plan(const attention_call *call, const mla_caps *caps,
                            mla_plan **out, mla_error *err)
{
    mla_session *session = NULL;
    mla_ticket ticket = 0;
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_status status = MLA_OK;
    MLAI_TRY(mla_session_open(call->context, &options, &session, err));
    MLAI_TRY_OR(end, mla_session_add(session, caps, NULL, &ticket, err));
    MLAI_TRY_OR(end, mla_session_prepare(session, err));
    MLAI_TRY_OR(end, mla_session_publish(session, ticket, out, err));
end:
    mla_session_close(&session);
    return status;
}

static mla_status take_operands(attention_call *call, mla_error *err)
{
    mla_requirements needs = MLA_INIT(mla_requirements);
    MLAI_TRY(mla_plan_requirements(call->plan, &needs, err));
    const struct {
        const mla_need *need;
        operand *out;
        operand_side side;
        mla_purpose purpose;
    } wanted[] = {
        {&needs.query, &call->query, OPERAND_BOTH_SIDES, MLA_FOR_ACTIVATIONS},
        {&needs.output, &call->output, OPERAND_BOTH_SIDES, MLA_FOR_ACTIVATIONS},
        {&needs.lse, &call->lse, OPERAND_BOTH_SIDES, MLA_FOR_ACTIVATIONS},
        {&needs.block_table, &call->block_table, OPERAND_BOTH_SIDES, MLA_FOR_ACTIVATIONS},
        {&needs.context_lens, &call->context_lens, OPERAND_BOTH_SIDES, MLA_FOR_ACTIVATIONS},
        {&needs.query_starts, &call->query_starts, OPERAND_BOTH_SIDES, MLA_FOR_ACTIVATIONS},
        {&needs.workspace, &call->workspace, OPERAND_DEVICE_ONLY, MLA_FOR_ACTIVATIONS},
        {&needs.kv_pool, &call->kv_pool, OPERAND_DEVICE_ONLY, MLA_FOR_KV},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (!wanted[i].out->data) {
            MLAI_TRY(operand_take(call->context, wanted[i].need, wanted[i].purpose,
                                  wanted[i].side, wanted[i].out, err));
        }
    }
    return MLA_OK;
}

static mla_status take_staging(attention_call *call, const mla_caps *caps, mla_error *err)
{
    size_t width = (size_t)caps->latent_dim + (size_t)caps->rope_dim;
    mla_need rows = {APPEND_ROWS * width * sizeof(float), 1, call->kv_pool.space};
    mla_need slots = {APPEND_ROWS * sizeof(int64_t), 1, call->kv_pool.space};
    MLAI_TRY(operand_take(call->context, &rows, MLA_FOR_OTHER, OPERAND_BOTH_SIDES,
                          &call->rows, err));
    return operand_take(call->context, &slots, MLA_FOR_OTHER, OPERAND_BOTH_SIDES,
                        &call->slots, err);
}

mla_status attention_call_open(attention_call *call, mla_plan *plan, const mla_caps *caps,
                               mla_error *err)
{
    call->plan = mla_plan_retain(plan);
    MLAI_TRY(take_operands(call, err));
    return take_staging(call, caps, err);
}

mla_status attention_call_plan(attention_call *call, const mla_caps *caps, mla_error *err)
{
    mla_plan *plan = NULL;
    MLAI_TRY(make_plan(call, caps, &plan, err));
    mla_status status = attention_call_open(call, plan, caps, err);
    mla_plan_release(&plan);
    return status;
}

static mla_status take_scale(attention_call *call, const float *scale, operand *out,
                             mla_error *err)
{
    if (!scale) {
        return MLA_OK;
    }
    mla_need need = {sizeof *scale, 1, call->kv_pool.space};
    MLAI_TRY(operand_take(call->context, &need, MLA_FOR_ACTIVATIONS, OPERAND_BOTH_SIDES,
                          out, err));
    memcpy(out->host, scale, sizeof *scale);
    return operand_send(call->context, out, err);
}

mla_status attention_call_scales(attention_call *call, const float *kv_scale,
                                 const float *query_scale, mla_error *err)
{
    MLAI_TRY(take_scale(call, kv_scale, &call->kv_scale, err));
    return take_scale(call, query_scale, &call->query_scale, err);
}

mla_buffers attention_call_buffers(const attention_call *call)
{
    mla_buffers buffers = MLA_INIT(mla_buffers);
    buffers.kv_pool = operand_in(&call->kv_pool);
    buffers.query = operand_in(&call->query);
    buffers.block_table = operand_in(&call->block_table);
    buffers.context_lens = operand_in(&call->context_lens);
    buffers.query_starts = operand_in(&call->query_starts);
    buffers.kv_scale = operand_in(&call->kv_scale);
    buffers.query_scale = operand_in(&call->query_scale);
    buffers.output = operand_out(&call->output);
    buffers.lse = operand_out(&call->lse);
    buffers.workspace = operand_out(&call->workspace);
    return buffers;
}

mla_status attention_call_bind(attention_call *call, const float *kv_scale,
                               const float *query_scale, mla_error *err)
{
    MLAI_TRY(attention_call_scales(call, kv_scale, query_scale, err));
    mla_buffers buffers = attention_call_buffers(call);
    return mla_bind(call->plan, &buffers, &call->binding, err);
}

/* At most APPEND_ROWS, which the staging arrays hold. */
static mla_status append_some(attention_call *call, const float *rows, int64_t first,
                              int64_t num, mla_error *err)
{
    size_t row_bytes = call->rows.bytes / APPEND_ROWS;
    int64_t *slots = call->slots.host;
    mla_append_args args = MLA_INIT(mla_append_args);
    memcpy(call->rows.host, rows, (size_t)num * row_bytes);
    for (int64_t i = 0; i < num; i++) {
        slots[i] = first + i;
    }
    MLAI_TRY(operand_send(call->context, &call->rows, err));
    MLAI_TRY(operand_send(call->context, &call->slots, err));
    args.rows = (mla_in){call->rows.data, (size_t)num * row_bytes};
    args.slots = (mla_in){call->slots.data, (size_t)num * sizeof *slots};
    args.kv_scale = operand_in(&call->kv_scale);
    args.kv_pool = operand_out(&call->kv_pool);
    args.rows_dtype = MLA_F32;
    args.num_rows = num;
    return mla_append(call->plan, &args, (mla_stream){NULL}, err);
}

mla_status attention_call_append(attention_call *call, const float *rows, int64_t first,
                                 int64_t num, mla_error *err)
{
    size_t width = call->rows.bytes / APPEND_ROWS / sizeof *rows;
    for (int64_t done = 0; done < num; done += APPEND_ROWS) {
        int64_t some = num - done < APPEND_ROWS ? num - done : APPEND_ROWS;
        MLAI_TRY(append_some(call, rows + (size_t)done * width, first + done, some, err));
    }
    return MLA_OK;
}

mla_status attention_call_send(const attention_call *call, mla_error *err)
{
    const operand *inputs[] = {&call->query, &call->block_table, &call->context_lens,
                               &call->query_starts};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        MLAI_TRY(operand_send(call->context, inputs[i], err));
    }
    return MLA_OK;
}

mla_status attention_call_fetch(const attention_call *call, mla_error *err)
{
    MLAI_TRY(operand_fetch(call->context, &call->output, err));
    return operand_fetch(call->context, &call->lse, err);
}

void attention_call_free(attention_call *call)
{
    operand *taken[] = {&call->query,  &call->block_table, &call->context_lens,
                        &call->output, &call->lse,         &call->query_starts,
                        &call->rows,   &call->kv_pool,     &call->workspace,
                        &call->slots,  &call->kv_scale,    &call->query_scale};
    mla_unbind(&call->binding);
    if (call->kv_pool.data) { /* an append may still write into it */
        (void)call->context->ops->synchronise(call->context, NULL);
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (taken[i]->data) {
            operand_give(call->context, taken[i]);
        }
    }
    mla_plan_release(&call->plan);
}
