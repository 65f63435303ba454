/* attend_run.c - a case becomes caps, buffers and one run: see attend_run.h. */
#include "cli/attend_run.h"

#include <string.h>

#include "base/convert.h"
#include "base/status.h"

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

static void fill_operands(const attend_case *attend, const attention_call *call)
{
    fill_query(attend, call->query.host);
    memcpy(call->block_table.host, attend->block_table.data,
           attend->block_table.header.num_items * sizeof(int32_t));
    memcpy(call->context_lens.host, attend->context_lens.data,
           attend->context_lens.header.num_items * sizeof(int32_t));
    memcpy(call->query_starts.host, attend->query_starts.data,
           attend->query_starts.header.num_items * sizeof(int32_t));
}

static mla_status fill_pool(const attend_case *attend, attention_call *call, mla_error *err)
{
    return attention_call_append(call, attend->kv.data, 0,
                                 attend->shape.num_pages * attend->shape.page_tokens, err);
}

mla_status attend_run(const attend_case *attend, attention_call *call, mla_error *err)
{
    mla_caps caps = caps_of(attend);
    MLAI_TRY(attention_call_plan(call, &caps, err));
    MLAI_TRY(
        attention_call_bind(call, attend->kv_scale.data, attend->query_scale.data, err));
    MLAI_TRY(fill_pool(attend, call, err));
    fill_operands(attend, call);
    MLAI_TRY(attention_call_send(call, err));
    mla_batch batch = MLA_INIT(mla_batch);
    batch.num_requests = attend->shape.num_requests;
    batch.num_query_rows = attend->shape.num_query_rows;
    batch.max_context_tokens = caps.max_context_tokens;
    MLAI_TRY(mla_run(call->binding, &batch, (mla_stream){NULL}, err));
    return attention_call_fetch(call, err);
}
