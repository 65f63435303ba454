/* operands.c - taking, filling and giving back priming operands: see operands.h. */
#include "attention/operands.h"

#include "base/size.h"

enum { KV_POOL, QUERY, TABLE, LENS, STARTS, KV_SCALE, QUERY_SCALE, OUTPUT, LSE, WORKSPACE };

static const char *const operand_names[MLAI_NUM_OPERANDS] = {
    [KV_POOL] = "the priming page",
    [QUERY] = "the priming query",
    [TABLE] = "the priming block table",
    [LENS] = "the priming lengths",
    [STARTS] = "the priming query starts",
    [KV_SCALE] = "the priming KV scale",
    [QUERY_SCALE] = "the priming query scale",
    [OUTPUT] = "the priming output",
    [LSE] = "the priming lse",
    [WORKSPACE] = "the priming workspace",
};

enum { OPERAND_ALIGN_BYTES = 256 };

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* As many requests of one row as the plan serves, the first with a page of keys and the rest
 * empty: every program starts, and no KV but that page is needed. */
static mlai_geometry priming_geometry(const mlai_geometry *geometry)
{
    mlai_geometry priming = *geometry;
    mla_caps *caps = &priming.caps;
    caps->max_requests = smaller(caps->max_requests, caps->max_query_rows);
    caps->max_query_rows = caps->max_requests;
    caps->max_rows_per_request = 1;
    caps->num_pages = 1;
    caps->table_width = 1;
    if (caps->max_context_tokens > caps->page_tokens) {
        caps->max_context_tokens = caps->page_tokens;
    }
    priming.table_tokens = caps->page_tokens;
    return priming;
}

static void list_bytes(const mlai_geometry *priming, size_t workspace_bytes,
                       size_t bytes[MLAI_NUM_OPERANDS])
{
    mla_requirements need;
    mlai_geometry_requirements(priming, MLA_SPACE_HOST, &need);
    bytes[KV_POOL] = need.kv_pool.bytes;
    bytes[QUERY] = need.query.bytes;
    bytes[TABLE] = need.block_table.bytes;
    bytes[LENS] = need.context_lens.bytes;
    bytes[STARTS] = need.query_starts.bytes;
    bytes[KV_SCALE] = priming->caps.kv_format == MLA_KV_FP8 ? sizeof(float) : 0;
    bytes[QUERY_SCALE] = priming->caps.query_dtype == MLA_E4M3 ? sizeof(float) : 0;
    bytes[OUTPUT] = need.output.bytes;
    bytes[LSE] = need.lse.bytes;
    bytes[WORKSPACE] = workspace_bytes;
}

uint64_t mlai_operands_bytes(const mlai_geometry *geometry, size_t workspace_bytes)
{
    mlai_geometry priming = priming_geometry(geometry);
    size_t bytes[MLAI_NUM_OPERANDS];
    list_bytes(&priming, workspace_bytes, bytes);
    uint64_t sum = 0;
    for (int i = 0; i < MLAI_NUM_OPERANDS; i++) {
        sum = mlai_size_sum(sum, bytes[i]);
    }
    return sum;
}

mla_status mlai_operands_take(mla_context *context, const mlai_geometry *geometry,
                              size_t workspace_bytes, mlai_operands *operands,
                              mla_error *err)
{
    size_t bytes[MLAI_NUM_OPERANDS];
    *operands = (mlai_operands){.geometry = priming_geometry(geometry)};
    list_bytes(&operands->geometry, workspace_bytes, bytes);
    for (int i = 0; i < MLAI_NUM_OPERANDS; i++) {
        if (bytes[i] == 0) {
            continue;
        }
        MLAI_TRY(mlai_ledger_take(&context->ledger, context->ops->space, MLA_FOR_SESSION,
                                  bytes[i], OPERAND_ALIGN_BYTES, operand_names[i],
                                  &operands->block[i].data, err));
        operands->block[i].bytes = bytes[i];
    }
    return MLA_OK;
}

static mla_in in_of(const mlai_operands *operands, int i)
{
    return (mla_in){operands->block[i].data, operands->block[i].bytes};
}

static mla_out out_of(const mlai_operands *operands, int i)
{
    return (mla_out){operands->block[i].data, operands->block[i].bytes};
}

static void name_buffers(mlai_operands *operands)
{
    operands->buffers = (mla_buffers){
        .struct_size = sizeof(mla_buffers),
        .kv_pool = in_of(operands, KV_POOL),
        .query = in_of(operands, QUERY),
        .block_table = in_of(operands, TABLE),
        .context_lens = in_of(operands, LENS),
        .query_starts = in_of(operands, STARTS),
        .kv_scale = in_of(operands, KV_SCALE),
        .query_scale = in_of(operands, QUERY_SCALE),
        .output = out_of(operands, OUTPUT),
        .lse = out_of(operands, LSE),
        .workspace = out_of(operands, WORKSPACE),
    };
}

static mla_status write_starts(mla_context *context, const mlai_operands *operands,
                               mla_error *err)
{
    enum { PIECE = 64 };
    int32_t piece[PIECE];
    int32_t num_starts = operands->batch.num_requests + 1;
    int32_t *to = operands->block[STARTS].data;
    for (int32_t i = 0; i < num_starts; i += PIECE) {
        int32_t num = smaller(PIECE, num_starts - i);
        for (int32_t j = 0; j < num; j++) {
            piece[j] = i + j;
        }
        MLAI_TRY(
            context->ops->upload(context, to + i, piece, (size_t)num * sizeof *piece, err));
    }
    return MLA_OK;
}

mla_status mlai_operands_fill(mla_context *context, mlai_operands *operands, mla_error *err)
{
    const mla_caps *caps = &operands->geometry.caps;
    const mlai_backend *ops = context->ops;
    const float scale = 1.0F;
    const int32_t length = (int32_t)caps->max_context_tokens;
    operands->batch = (mla_batch){.struct_size = sizeof(mla_batch),
                                  .num_requests = caps->max_requests,
                                  .num_query_rows = caps->max_query_rows,
                                  .max_context_tokens = caps->max_context_tokens};
    name_buffers(operands);
    for (int i = KV_POOL; i < WORKSPACE; i++) {
        if (operands->block[i].data) {
            MLAI_TRY(ops->clear(context, operands->block[i].data, operands->block[i].bytes,
                                err));
        }
    }
    for (int i = KV_SCALE; i <= QUERY_SCALE; i++) {
        if (operands->block[i].data) {
            MLAI_TRY(
                ops->upload(context, operands->block[i].data, &scale, sizeof scale, err));
        }
    }
    MLAI_TRY(ops->upload(context, operands->block[LENS].data, &length, sizeof length, err));
    return write_starts(context, operands, err);
}

void mlai_operands_give(mla_context *context, mlai_operands *operands)
{
    for (int i = MLAI_NUM_OPERANDS - 1; i >= 0; i--) {
        mlai_ledger_give(&context->ledger, context->ops->space, MLA_FOR_SESSION,
                         operands->block[i].bytes, operands->block[i].data);
        operands->block[i].data = NULL;
        operands->block[i].bytes = 0;
    }
}
