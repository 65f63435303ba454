#include "cli/attend_run.h"

#include <string.h>

#include "base/convert.h"
#include "base/status.h"

enum { ALIGN_BYTES = 64 };

/* A buffer as the plan wants it. */
typedef struct operand {
    void *data;
    size_t bytes;
    mla_purpose purpose;
} operand;

typedef struct attend_call {
    const attend_case *attend;
    mla_context *context;
    mla_plan *plan;
    mla_binding *binding;
    operand kv_pool, query, block_table, context_lens, query_starts, workspace;
} attend_call;

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

static void give_operand(mla_context *context, operand *given)
{
    mla_memory_give(context, MLA_SPACE_HOST, given->purpose, given->bytes, given->data);
    given->data = NULL;
}

static int32_t most_rows(const attend_case *attend)
{
    const int32_t *starts = attend->query_starts.data;
    int32_t most = 1;
    for (int32_t i = 0; i < attend->shape.num_requests; i++) {
        int32_t rows = starts[i + 1] - starts[i];
        most = rows > most ? rows : most;
    }
    return most;
}

/* Of all requests, no more than the table can name, and at least 1. */
static int64_t longest_context(const attend_case *attend)
{
    const int32_t *lens = attend->context_lens.data;
    int64_t holds = (int64_t)attend->shape.table_width * attend->shape.page_tokens;
    int64_t longest = 1;
    for (int32_t i = 0; i < attend->shape.num_requests; i++) {
        longest = lens[i] > longest ? lens[i] : longest;
    }
    return longest < holds ? longest : holds;
}

static mla_caps caps_of(const attend_case *attend)
{
    const attend_shape *shape = &attend->shape;
    mla_caps caps = MLA_INIT(mla_caps);
    caps.max_rows_per_request = most_rows(attend);
    caps.mode = caps.max_rows_per_request > 1 ? MLA_EXTEND : MLA_DECODE;
    caps.kv_format = shape->kv_format;
    caps.query_dtype = shape->query_dtype;
    caps.output_dtype = MLA_F32;
    caps.num_heads = shape->heads;
    caps.latent_dim = shape->latent_dim;
    caps.rope_dim = shape->rope_dim;
    caps.page_tokens = shape->page_tokens;
    caps.causal = shape->causal;
    caps.window = shape->window;
    caps.softmax_scale = shape->softmax_scale;
    caps.max_requests = shape->num_requests;
    caps.max_query_rows = shape->num_query_rows > 0 ? shape->num_query_rows : 1;
    caps.table_width = shape->table_width;
    caps.max_context_tokens = longest_context(attend);
    caps.num_pages = shape->num_pages;
    return caps;
}

static mla_status make_plan(mla_context *context, const mla_caps *caps, mla_plan **out,
                            mla_error *err)
{
    mla_session *session = NULL;
    mla_ticket ticket = 0;
    mla_session_options options = MLA_INIT(mla_session_options);
    mla_status status = mla_session_open(context, &options, &session, err);
    MLAI_TRY_OR(end, status);
    MLAI_TRY_OR(end, mla_session_add(session, caps, NULL, &ticket, err));
    MLAI_TRY_OR(end, mla_session_prepare(session, err));
    MLAI_TRY_OR(end, mla_session_publish(session, ticket, out, err));
end:
    mla_session_close(&session);
    return status;
}

static mla_status take_operands(attend_call *call, attend_result *result, mla_error *err)
{
    mla_requirements needs = MLA_INIT(mla_requirements);
    MLAI_TRY(mla_plan_requirements(call->plan, &needs, err));
    const struct {
        const mla_need *need;
        mla_purpose purpose;
        operand *out;
    } wanted[] = {
        {&needs.kv_pool, MLA_FOR_KV, &call->kv_pool},
        {&needs.query, MLA_FOR_ACTIVATIONS, &call->query},
        {&needs.block_table, MLA_FOR_ACTIVATIONS, &call->block_table},
        {&needs.context_lens, MLA_FOR_ACTIVATIONS, &call->context_lens},
        {&needs.query_starts, MLA_FOR_ACTIVATIONS, &call->query_starts},
        {&needs.workspace, MLA_FOR_ACTIVATIONS, &call->workspace},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        MLAI_TRY(take_operand(call->context, wanted[i].need, wanted[i].purpose,
                              wanted[i].out, err));
    }
    operand out = {0};
    operand lse = {0};
    MLAI_TRY(take_operand(call->context, &needs.output, MLA_FOR_ACTIVATIONS, &out, err));
    result->out = out.data;
    result->out_bytes = out.bytes;
    MLAI_TRY(take_operand(call->context, &needs.lse, MLA_FOR_ACTIVATIONS, &lse, err));
    result->lse = lse.data;
    result->lse_bytes = lse.bytes;
    return MLA_OK;
}

/* query[i] = q[i] in the query's type; e4m3 holds q / scale. */
static void fill_query(const attend_case *attend, void *query)
{
    const float *q = attend->q.data;
    size_t num = attend->q.header.num_items;
    if (attend->shape.query_dtype == MLA_F32) {
        memcpy(query, q, num * sizeof *q);
    } else if (attend->shape.query_dtype == MLA_BF16) {
        uint16_t *out = query;
        for (size_t i = 0; i < num; i++) {
            out[i] = mlai_bf16_from_f32(q[i]);
        }
    } else {
        uint8_t *out = query;
        float scale = *(const float *)attend->query_scale.data;
        for (size_t i = 0; i < num; i++) {
            out[i] = mlai_e4m3_from_f32(q[i] / scale);
        }
    }
}

static mla_in scale_of(const npy_array *scale)
{
    return (mla_in){scale->data, scale->data ? sizeof(float) : 0};
}

/* Every row of the pool, in place. */
static mla_status append_rows(const attend_call *call, int64_t *slots, mla_error *err)
{
    const attend_case *attend = call->attend;
    int64_t num_rows = attend->shape.num_pages * attend->shape.page_tokens;
    for (int64_t i = 0; i < num_rows; i++) {
        slots[i] = i;
    }
    mla_append_args args = MLA_INIT(mla_append_args);
    args.rows = (mla_in){attend->kv.data, attend->kv.header.num_items * sizeof(float)};
    args.slots = (mla_in){slots, (size_t)num_rows * sizeof *slots};
    args.kv_scale = scale_of(&attend->kv_scale);
    args.kv_pool = (mla_out){call->kv_pool.data, call->kv_pool.bytes};
    args.num_rows = num_rows;
    args.rows_dtype = MLA_F32;
    return mla_append(call->plan, &args, (mla_stream){NULL}, err);
}

static mla_status fill_pool(const attend_call *call, mla_error *err)
{
    const attend_shape *shape = &call->attend->shape;
    size_t bytes = (size_t)(shape->num_pages * shape->page_tokens) * sizeof(int64_t);
    void *slots = NULL;
    MLAI_TRY(mla_memory_take(call->context, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS, bytes,
                             ALIGN_BYTES, &slots, err));
    mla_status status = append_rows(call, slots, err);
    mla_memory_give(call->context, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS, bytes, slots);
    return status;
}

static void fill_operands(const attend_call *call)
{
    const attend_case *attend = call->attend;
    fill_query(attend, call->query.data);
    memcpy(call->block_table.data, attend->block_table.data,
           attend->block_table.header.num_items * sizeof(int32_t));
    memcpy(call->context_lens.data, attend->context_lens.data,
           attend->context_lens.header.num_items * sizeof(int32_t));
    memcpy(call->query_starts.data, attend->query_starts.data,
           attend->query_starts.header.num_items * sizeof(int32_t));
}

static mla_status bind_call(attend_call *call, const attend_result *result, mla_error *err)
{
    mla_buffers buffers = MLA_INIT(mla_buffers);
    buffers.kv_pool = (mla_in){call->kv_pool.data, call->kv_pool.bytes};
    buffers.query = (mla_in){call->query.data, call->query.bytes};
    buffers.block_table = (mla_in){call->block_table.data, call->block_table.bytes};
    buffers.context_lens = (mla_in){call->context_lens.data, call->context_lens.bytes};
    buffers.query_starts = (mla_in){call->query_starts.data, call->query_starts.bytes};
    buffers.kv_scale = scale_of(&call->attend->kv_scale);
    buffers.query_scale = scale_of(&call->attend->query_scale);
    buffers.output = (mla_out){result->out, result->out_bytes};
    buffers.lse = (mla_out){result->lse, result->lse_bytes};
    buffers.workspace = (mla_out){call->workspace.data, call->workspace.bytes};
    return mla_bind(call->plan, &buffers, &call->binding, err);
}

static mla_status run_call(attend_call *call, attend_result *result, mla_error *err)
{
    const attend_case *attend = call->attend;
    mla_caps caps = caps_of(attend);
    MLAI_TRY(make_plan(call->context, &caps, &call->plan, err));
    MLAI_TRY(take_operands(call, result, err));
    MLAI_TRY(fill_pool(call, err));
    fill_operands(call);
    MLAI_TRY(bind_call(call, result, err));
    mla_batch batch = MLA_INIT(mla_batch);
    batch.num_requests = attend->shape.num_requests;
    batch.num_query_rows = attend->shape.num_query_rows;
    batch.max_context_tokens = caps.max_context_tokens;
    return mla_run(call->binding, &batch, (mla_stream){NULL}, err);
}

mla_status attend_run(const attend_case *attend, attend_result *out, mla_error *err)
{
    attend_call call = {.attend = attend, .context = attend->context};
    out->context = attend->context;
    mla_status status = run_call(&call, out, err);
    mla_unbind(&call.binding);
    operand *operands[] = {&call.kv_pool,      &call.query,        &call.block_table,
                           &call.context_lens, &call.query_starts, &call.workspace};
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        give_operand(call.context, operands[i]);
    }
    mla_plan_release(&call.plan);
    return status;
}

void attend_result_free(attend_result *result)
{
    if (result->context) {
        mla_memory_give(result->context, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS,
                        result->out_bytes, result->out);
        mla_memory_give(result->context, MLA_SPACE_HOST, MLA_FOR_ACTIVATIONS,
                        result->lse_bytes, result->lse);
    }
    *result = (attend_result){0};
}
