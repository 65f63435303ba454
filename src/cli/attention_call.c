/* attention_call.c - plan, buffers and binding in one: see attention_call.h. */
#include "cli/attention_call.h"

#include "base/status.h"

enum { ALIGN_BYTES = 64, APPEND_ROWS = 64 };

static mla_status make_plan(attention_call *call, const mla_caps *caps, mla_error *err)
{
    mla_session *session = NULL;
    mla_ticket ticket = 0;
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_status status = MLA_OK;
    MLAI_TRY(mla_session_open(call->context, &options, &session, err));
    MLAI_TRY_OR(end, mla_session_add(session, caps, NULL, &ticket, err));
    MLAI_TRY_OR(end, mla_session_prepare(session, err));
    MLAI_TRY_OR(end, mla_session_publish(session, ticket, &call->plan, err));
end:
    mla_session_close(&session);
    return status;
}

static mla_status take_operand(mla_context *context, const mla_need *need,
                               mla_purpose purpose, operand *out, mla_error *err)
{
    void *data = NULL;
    size_t bytes = need->bytes > 0 ? need->bytes : 1;
    size_t align = need->align_bytes > ALIGN_BYTES ? need->align_bytes : ALIGN_BYTES;
    MLAI_TRY(mla_memory_take(context, MLA_SPACE_HOST, purpose, bytes, align, &data, err));
    *out = (operand){data, bytes, purpose};
    return MLA_OK;
}

static mla_status take_operands(attention_call *call, mla_error *err)
{
    mla_requirements needs = MLA_INIT(mla_requirements);
    MLAI_TRY(mla_plan_requirements(call->plan, &needs, err));
    const struct {
        const mla_need *need;
        operand *out;
    } wanted[] = {
        {&needs.query, &call->query},
        {&needs.output, &call->output},
        {&needs.lse, &call->lse},
        {&needs.block_table, &call->block_table},
        {&needs.context_lens, &call->context_lens},
        {&needs.query_starts, &call->query_starts},
        {&needs.workspace, &call->workspace},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        MLAI_TRY(take_operand(call->context, wanted[i].need, MLA_FOR_ACTIVATIONS,
                              wanted[i].out, err));
    }
    return take_operand(call->context, &needs.kv_pool, MLA_FOR_KV, &call->kv_pool, err);
}

mla_status attention_call_plan(attention_call *call, const mla_caps *caps, mla_error *err)
{
    MLAI_TRY(make_plan(call, caps, err));
    return take_operands(call, err);
}

static mla_in in_of(const operand *from)
{
    return (mla_in){from->data, from->bytes};
}

static mla_out out_of(const operand *from)
{
    return (mla_out){from->data, from->bytes};
}

static mla_in scale_of(const float *scale)
{
    return (mla_in){scale, scale ? sizeof *scale : 0};
}

mla_status attention_call_bind(attention_call *call, const float *kv_scale,
                               const float *query_scale, mla_error *err)
{
    mla_buffers buffers = MLA_INIT(mla_buffers);
    buffers.kv_pool = in_of(&call->kv_pool);
    buffers.query = in_of(&call->query);
    buffers.block_table = in_of(&call->block_table);
    buffers.context_lens = in_of(&call->context_lens);
    buffers.query_starts = in_of(&call->query_starts);
    buffers.kv_scale = scale_of(kv_scale);
    buffers.query_scale = scale_of(query_scale);
    buffers.output = out_of(&call->output);
    buffers.lse = out_of(&call->lse);
    buffers.workspace = out_of(&call->workspace);
    return mla_bind(call->plan, &buffers, &call->binding, err);
}

mla_status attention_call_append(const attention_call *call, const float *rows,
                                 size_t row_bytes, int64_t first, int64_t num,
                                 const float *kv_scale, mla_error *err)
{
    int64_t slots[APPEND_ROWS];
    mla_append_args args = MLA_INIT(mla_append_args);
    args.kv_scale = scale_of(kv_scale);
    args.kv_pool = out_of(&call->kv_pool);
    args.rows_dtype = MLA_F32;
    for (int64_t done = 0; done < num; done += args.num_rows) {
        args.num_rows = num - done < APPEND_ROWS ? num - done : APPEND_ROWS;
        for (int64_t i = 0; i < args.num_rows; i++) {
            slots[i] = first + done + i;
        }
        args.rows = (mla_in){(const char *)rows + (size_t)done * row_bytes,
                             (size_t)args.num_rows * row_bytes};
        args.slots = (mla_in){slots, (size_t)args.num_rows * sizeof slots[0]};
        MLAI_TRY(mla_append(call->plan, &args, (mla_stream){NULL}, err));
    }
    return MLA_OK;
}

void attention_call_free(attention_call *call)
{
    operand *operands[] = {&call->kv_pool,      &call->query,       &call->output,
                           &call->lse,          &call->block_table, &call->context_lens,
                           &call->query_starts, &call->workspace};
    mla_unbind(&call->binding);
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        if (operands[i]->data) {
            mla_memory_give(call->context, MLA_SPACE_HOST, operands[i]->purpose,
                            operands[i]->bytes, operands[i]->data);
        }
        *operands[i] = (operand){0};
    }
    mla_plan_release(&call->plan);
}
