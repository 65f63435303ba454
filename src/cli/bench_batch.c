/* bench_batch.c - a plan's buffers, filled with noise: see bench_batch.h. */
#include "cli/bench_batch.h"

#include "base/convert.h"
#include "base/status.h"
#include "cli/noise.h"

enum { APPEND_ROWS = 64, ALIGN_BYTES = 64 };

static const float one_kv_scale = 0.015625F;
static const float one_query_scale = 0.0078125F;

static mla_status fill_pool(bench_batch *batch, float *rows, mla_error *err)
{
    const mla_caps *caps = &batch->caps;
    size_t width = (size_t)caps->latent_dim + (size_t)caps->rope_dim;
    int64_t num_rows = caps->num_pages * caps->page_tokens;
    uint32_t state = 1;
    for (int64_t first = 0; first < num_rows; first += APPEND_ROWS) {
        int64_t left = num_rows - first;
        int64_t num = left < APPEND_ROWS ? left : APPEND_ROWS;
        for (size_t i = 0; i < (size_t)num * width; i++) {
            rows[i] = noise_uniform(&state);
        }
        MLAI_TRY(attention_call_append(&batch->call, rows, first, num, err));
    }
    return MLA_OK;
}

static mla_status make_pool(bench_batch *batch, mla_error *err)
{
    mla_context *context = batch->call.context;
    size_t width = (size_t)batch->caps.latent_dim + (size_t)batch->caps.rope_dim;
    size_t bytes = APPEND_ROWS * width * sizeof(float);
    void *rows = NULL;
    MLAI_TRY(mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_OTHER, bytes, ALIGN_BYTES,
                             &rows, err));
    mla_status status = fill_pool(batch, rows, err);
    mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_OTHER, bytes, rows);
    return status;
}

static void fill_query(const bench_batch *batch)
{
    const mla_caps *caps = &batch->caps;
    void *query = batch->call.query.host;
    size_t num = (size_t)caps->max_query_rows * (size_t)caps->num_heads *
                 (size_t)(caps->latent_dim + caps->rope_dim);
    uint32_t state = 2;
    for (size_t i = 0; i < num; i++) {
        float value = noise_uniform(&state);
        switch (caps->query_dtype) {
        case MLA_F32:
            ((float *)query)[i] = value;
            break;
        case MLA_BF16:
            ((uint16_t *)query)[i] = mlai_bf16_from_f32(value);
            break;
        case MLA_E4M3:
            ((uint8_t *)query)[i] = mlai_e4m3_from_f32(value / one_query_scale);
            break;
        }
    }
}

/* Pages lie in the pool in another order than in the table. Where the pool is smaller than
 * all tables together, requests share pages. */
static void fill_table(const bench_batch *batch)
{
    enum { STRIDE = 29 }; /* odd: each page once where their number is a power of 2 */
    int32_t *table = batch->call.block_table.host;
    int64_t num_slots = (int64_t)batch->caps.max_requests * batch->caps.table_width;
    for (int64_t i = 0; i < num_slots; i++) {
        table[i] = (int32_t)(i % batch->caps.num_pages * STRIDE % batch->caps.num_pages);
    }
}

/* Rows are spread over the requests as evenly as they can be. */
static void fill_rows(bench_batch *batch)
{
    const mla_caps *caps = &batch->caps;
    int32_t *lens = batch->call.context_lens.host;
    int32_t *starts = batch->call.query_starts.host;
    starts[0] = 0;
    for (int32_t i = 0; i < caps->max_requests; i++) {
        int32_t left = caps->max_query_rows - starts[i];
        int32_t requests = caps->max_requests - i;
        int32_t rows = left / requests + (left % requests > 0);
        rows = rows < caps->max_rows_per_request ? rows : caps->max_rows_per_request;
        batch->most_rows = rows > batch->most_rows ? rows : batch->most_rows;
        lens[i] = (int32_t)caps->max_context_tokens;
        starts[i + 1] = starts[i] + rows;
    }
    batch->batch = (mla_batch)MLA_INIT(mla_batch);
    batch->batch.num_requests = caps->max_requests;
    batch->batch.num_query_rows = starts[caps->max_requests];
    batch->batch.max_context_tokens = caps->max_context_tokens;
}

mla_status bench_batch_open(mla_context *context, const mla_caps *caps, bench_batch *out,
                            mla_error *err)
{
    out->caps = *caps;
    out->call.context = context;
    out->kv_scale = caps->kv_format == MLA_KV_FP8 ? &one_kv_scale : NULL;
    out->query_scale = caps->query_dtype == MLA_E4M3 ? &one_query_scale : NULL;
    MLAI_TRY(attention_call_plan(&out->call, caps, err));
    MLAI_TRY(attention_call_bind(&out->call, out->kv_scale, out->query_scale, err));
    MLAI_TRY(make_pool(out, err));
    fill_query(out);
    fill_table(out);
    fill_rows(out);
    return attention_call_send(&out->call, err);
}

void bench_batch_free(bench_batch *batch)
{
    attention_call_free(&batch->call);
}
