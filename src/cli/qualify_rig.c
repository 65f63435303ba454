/* qualify_rig.c - filling and running one part of a case: see qualify_rig.h. */
#include "cli/qualify_rig.h"

#include <math.h>
#include <string.h>

#include "attention/geometry.h"
#include "base/status.h"

enum {
    ROWS_BYTES = QUALIFY_TOKENS * QUALIFY_WIDTH * (int)sizeof(float),
    ALIGN_BYTES = 64,
    SHARD_PAGES = 2, /* of one request, on one rank */
};

static int32_t pages_of(int32_t tokens)
{
    return (tokens + QUALIFY_PAGE - 1) / QUALIFY_PAGE;
}

/* The physical page that holds the page-th one of a request. */
static int32_t page_at(const qualify_rig *rig, int32_t content, qualify_share share,
                       int32_t request, int32_t page)
{
    int32_t index = content == QUALIFY_SHORT ? QUALIFY_VARIANT : 0;
    if (rig->part == QUALIFY_SHARD) {
        index += share.placement.interleave > 1 ? QUALIFY_INTERLEAVE : 0;
        index += request * SHARD_PAGES;
    } else {
        for (int32_t i = 0; i < request; i++) {
            index += pages_of(rig->input->first_key[i + 1] - rig->input->first_key[i]);
        }
    }
    return qualify_case_page(rig->c, &rig->caps, index + page);
}

int64_t qualify_rig_reach(const qualify_rig *rig)
{
    int32_t last = 0;
    for (int32_t i = 0; i < QUALIFY_INDICES; i++) {
        int32_t page = qualify_case_page(rig->c, &rig->caps, i);
        last = page > last ? page : last;
    }
    return (last + (int64_t)1) * rig->caps.page_stride_bytes;
}

/* ------------------------------------------------------------------ the pool */

static mla_status append_page(qualify_rig *rig, int32_t page, int32_t offset,
                              const float *rows, int32_t num, mla_error *err)
{
    return attention_call_append(&rig->call, rows, (int64_t)page * QUALIFY_PAGE + offset,
                                 num, err);
}

/* What a request may keep on a page, and nobody may read. */
static mla_status spoil(qualify_rig *rig, int32_t content, qualify_share share,
                        int32_t request, mla_error *err)
{
    int32_t length = rig->input->content[content].lens[request];
    int32_t local =
        (int32_t)mlai_placement_local_length(share.placement, share.rank, length);
    for (int32_t i = 0; i < QUALIFY_PAGE * QUALIFY_WIDTH; i++) {
        rig->rows[i] = NAN;
    }
    for (int32_t page = 0; page < pages_of(local); page++) {
        MLAI_TRY(append_page(rig, page_at(rig, content, share, request, page), 0, rig->rows,
                             QUALIFY_PAGE, err));
    }
    return MLA_OK;
}

/* The share's keys of a request, in their local order. Returns how many. */
static int32_t gather(const qualify_rig *rig, int32_t content, qualify_share share,
                      int32_t request)
{
    const qualify_input *input = rig->input;
    const float *keys = input->keys + (size_t)input->first_key[request] * QUALIFY_WIDTH;
    int32_t num = 0;
    for (int32_t i = 0; i < input->content[content].lens[request]; i++) {
        if (mlai_placement_owner(share.placement, i) == share.rank) {
            memcpy(rig->rows + (size_t)num * QUALIFY_WIDTH,
                   keys + (size_t)i * QUALIFY_WIDTH, QUALIFY_WIDTH * sizeof *keys);
            num++;
        }
    }
    return num;
}

static mla_status store_request(qualify_rig *rig, int32_t content, qualify_share share,
                                int32_t request, mla_error *err)
{
    if (share.rank == 0) {
        MLAI_TRY(spoil(rig, content, share, request, err));
    }
    int32_t num = gather(rig, content, share, request);
    for (int32_t page = 0; page < pages_of(num); page++) {
        int32_t first = page * QUALIFY_PAGE;
        int32_t some = num - first < QUALIFY_PAGE ? num - first : QUALIFY_PAGE;
        MLAI_TRY(append_page(rig, page_at(rig, content, share, request, page), 0,
                             rig->rows + (size_t)first * QUALIFY_WIDTH, some, err));
    }
    return MLA_OK;
}

mla_status qualify_rig_store(qualify_rig *rig, int32_t content, qualify_share share,
                             qualify_window window, mla_error *err)
{
    for (int32_t i = 0; i < window.num; i++) {
        MLAI_TRY(store_request(rig, content, share, window.first + i, err));
    }
    return MLA_OK;
}

/* ------------------------------------------------------------- what is run on */

/* Slots past a request's end hold anything. */
static int32_t nonsense(const qualify_rig *rig, int32_t slot)
{
    const int32_t any[] = {0, -1, INT32_MAX, (int32_t)rig->caps.num_pages, INT32_MIN, 7};
    enum { NUM = sizeof any / sizeof any[0] };
    return rig->c->kind == QUALIFY_PADDED ? any[slot % NUM] : -1;
}

static void fill_table(const qualify_rig *rig, int32_t content, qualify_share share,
                       int32_t request, int32_t tokens, int32_t *table)
{
    for (int32_t slot = 0; slot < rig->caps.table_width; slot++) {
        table[slot] = slot < pages_of(tokens) ? page_at(rig, content, share, request, slot)
                                              : nonsense(rig, slot + request);
    }
}

static void load_whole(const qualify_rig *rig, int32_t content, qualify_share share,
                       qualify_window window)
{
    const qualify_input *input = rig->input;
    int32_t *lens = rig->call.context_lens.host;
    int32_t *starts = rig->call.query_starts.host;
    int32_t *table = rig->call.block_table.host;
    for (int32_t i = 0; i < window.num; i++) {
        int32_t request = window.first + i;
        lens[i] = input->content[content].lens[request];
        starts[i] = input->starts[request] - input->starts[window.first];
        starts[i + 1] = input->starts[request + 1] - input->starts[window.first];
        fill_table(rig, content, share, request, lens[i],
                   table + (size_t)i * (size_t)rig->caps.table_width);
    }
}

/* A row's local length follows from the keys that the row sees. */
static void load_shard(const qualify_rig *rig, int32_t content, qualify_share share,
                       qualify_window window)
{
    const qualify_input *input = rig->input;
    int32_t *lens = rig->call.context_lens.host;
    int32_t *starts = rig->call.query_starts.host;
    int32_t *table = rig->call.block_table.host;
    int32_t first = input->starts[window.first];
    int32_t end = input->starts[window.first + window.num];
    for (int32_t row = first; row < end; row++) {
        int32_t i = row - first;
        int32_t request = qualify_request_of(input, row);
        int32_t keys =
            qualify_row_keys(input, request, row, input->content[content].lens[request]);
        lens[i] = (int32_t)mlai_placement_local_length(share.placement, share.rank, keys);
        starts[i] = i;
        starts[i + 1] = i + 1;
        fill_table(rig, content, share, request, lens[i],
                   table + (size_t)i * (size_t)rig->caps.table_width);
    }
}

static mla_batch batch_of(const qualify_rig *rig, qualify_window window)
{
    const int32_t *starts = rig->call.query_starts.host;
    const int32_t *lens = rig->call.context_lens.host;
    const int32_t *first = rig->input->starts + window.first;
    mla_batch batch = MLA_INIT(mla_batch);
    int32_t num_rows = first[window.num] - first[0];
    batch.num_requests = rig->part == QUALIFY_SHARD ? num_rows : window.num;
    batch.num_query_rows = starts[batch.num_requests];
    batch.max_context_tokens = 1;
    for (int32_t i = 0; i < batch.num_requests; i++) {
        batch.max_context_tokens =
            lens[i] > batch.max_context_tokens ? lens[i] : batch.max_context_tokens;
    }
    return batch;
}

/* The window's rows of an array that has QUALIFY_ROWS of them: only these are copied. */
static operand rows_of(const qualify_rig *rig, const operand *all, qualify_window window)
{
    const int32_t *starts = rig->input->starts + window.first;
    operand some = *all;
    some.bytes = all->bytes / QUALIFY_ROWS * (size_t)(starts[window.num] - starts[0]);
    return some;
}

static mla_status send(const qualify_rig *rig, qualify_window window, mla_error *err)
{
    const operand arrays[] = {rows_of(rig, &rig->call.query, window),
                              rows_of(rig, &rig->call.output, window),
                              rows_of(rig, &rig->call.lse, window),
                              rig->call.block_table,
                              rig->call.context_lens,
                              rig->call.query_starts};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        MLAI_TRY(operand_send(rig->call.context, &arrays[i], err));
    }
    return MLA_OK;
}

static mla_status load(qualify_rig *rig, int32_t content, qualify_share share,
                       qualify_window window, mla_error *err)
{
    const qualify_input *input = rig->input;
    operand query = rows_of(rig, &rig->call.query, window);
    operand output = rows_of(rig, &rig->call.output, window);
    operand lse = rows_of(rig, &rig->call.lse, window);
    size_t row_bytes = rig->call.query.bytes / QUALIFY_ROWS;
    memcpy(query.host,
           input->content[content].query + (size_t)input->starts[window.first] * row_bytes,
           query.bytes);
    memset(output.host, 0xff, output.bytes);
    memset(lse.host, 0xff, lse.bytes);
    if (rig->part == QUALIFY_SHARD) {
        load_shard(rig, content, share, window);
    } else {
        load_whole(rig, content, share, window);
    }
    return send(rig, window, err);
}

mla_status qualify_rig_run(qualify_rig *rig, int32_t content, qualify_share share,
                           qualify_window window, mla_error *err)
{
    const mla_stream null_stream = {NULL};
    MLAI_TRY(load(rig, content, share, window, err));
    if (rig->c->kind == QUALIFY_REPLAY) {
        MLAI_TRY(mla_replay(rig->call.binding, null_stream, err));
    } else {
        mla_batch batch = batch_of(rig, window);
        MLAI_TRY(mla_run(rig->call.binding, &batch, null_stream, err));
    }
    operand output = rows_of(rig, &rig->call.output, window);
    operand lse = rows_of(rig, &rig->call.lse, window);
    MLAI_TRY(operand_fetch(rig->call.context, &output, err));
    return operand_fetch(rig->call.context, &lse, err);
}

attention_answer qualify_rig_answer(const qualify_rig *rig, int32_t row, int32_t head)
{
    size_t pair = (size_t)row * (size_t)rig->caps.num_heads + (size_t)head;
    size_t bytes = QUALIFY_LATENT * mlai_dtype_bytes(rig->caps.output_dtype);
    return (attention_answer){(const char *)rig->call.output.host + pair * bytes,
                              rig->caps.output_dtype,
                              ((const float *)rig->call.lse.host)[pair]};
}

mla_status qualify_rig_record(qualify_rig *rig, qualify_window window, mla_error *err)
{
    MLAI_TRY(load(rig, QUALIFY_EMPTY, (qualify_share){{1, 1}, 0}, window, err));
    mla_batch batch = batch_of(rig, window);
    batch.max_context_tokens = rig->caps.max_context_tokens;
    return mla_record(rig->call.binding, &batch, err);
}

/* ----------------------------------------------------------- opening, closing */

mla_status qualify_rig_open(mla_plan *plan, qualify_rig *out, mla_error *err)
{
    const qualify_input *input = out->input;
    bool is_fp8 = out->caps.kv_format == MLA_KV_FP8;
    bool is_e4m3 = out->caps.query_dtype == MLA_E4M3;
    out->call.context = input->context;
    MLAI_TRY(mla_memory_take(input->context, MLA_SPACE_HOST, MLA_FOR_OTHER, ROWS_BYTES,
                             ALIGN_BYTES, (void **)&out->rows, err));
    MLAI_TRY(attention_call_open(&out->call, plan, &out->caps, err));
    return attention_call_bind(&out->call, is_fp8 ? &input->kv_scale : NULL,
                               is_e4m3 ? &input->query_scale : NULL, err);
}

void qualify_rig_close(qualify_rig *rig)
{
    attention_call_free(&rig->call);
    mla_memory_give(rig->input->context, MLA_SPACE_HOST, MLA_FOR_OTHER, ROWS_BYTES,
                    rig->rows);
    rig->rows = NULL;
}
