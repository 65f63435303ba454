/* bench_rotation.c - tables, graphs and the check of one shape: see bench_rotation.h. */
#include "cli/bench_rotation.h"

#include "base/convert.h"
#include "base/status.h"
#include "cli/noise.h"

enum {
    REPLAYS_SLOW = 21,
    REPLAYS = 150, /* of what takes less than SLOW_US */
    MAX_CHECKED = 4,
};
#define ROTATED_BYTES 600e6
#define SLOW_US       1e3
#define LARGEST_QUERY 1.5F
static const float query_scale = 0.00390625F; /* of e4m3 queries: up to 1.75 */

int32_t bench_rotation_turns(const bench_shape *shape, mla_kv_format format)
{
    mla_caps caps = bench_shape_caps(shape, format);
    double bytes = (double)bench_shape_pages(shape) * caps.page_tokens *
                   (double)mla_kv_row_bytes(format, caps.latent_dim, caps.rope_dim);
    int32_t num = (int32_t)(ROTATED_BYTES / bytes) + 1;
    return num < BENCH_MAX_TURNS ? num : BENCH_MAX_TURNS;
}

int64_t bench_rotation_pages(const bench_shape *shape, mla_kv_format format)
{
    int64_t needed = bench_shape_pages(shape) * bench_rotation_turns(shape, format);
    return needed > shape->num_pages ? needed : shape->num_pages;
}

static void fill_query(bench_batch *batch)
{
    const mla_caps *caps = &batch->caps;
    size_t num = (size_t)caps->max_query_rows * (size_t)caps->num_heads *
                 (size_t)(caps->latent_dim + caps->rope_dim);
    uint32_t state = 7;
    for (size_t i = 0; i < num; i++) {
        float value = noise_uniform(&state) * LARGEST_QUERY;
        if (caps->query_dtype == MLA_E4M3) {
            ((uint8_t *)batch->call.query.host)[i] =
                mlai_e4m3_from_f32(value / query_scale);
        } else {
            ((uint16_t *)batch->call.query.host)[i] = mlai_bf16_from_f32(value);
        }
    }
}

static void fill_rows(bench_batch *batch, const bench_shape *shape)
{
    int32_t *lens = batch->call.context_lens.host;
    int32_t *starts = batch->call.query_starts.host;
    starts[0] = 0;
    for (int32_t i = 0; i < shape->requests; i++) {
        lens[i] = bench_shape_length(shape, i);
        starts[i + 1] = starts[i] + shape->rows;
    }
    batch->most_rows = shape->rows;
    batch->batch = (mla_batch)MLA_INIT(mla_batch);
    batch->batch.num_requests = shape->requests;
    batch->batch.num_query_rows = starts[shape->requests];
    batch->batch.max_context_tokens = batch->caps.max_context_tokens;
}

/* All pages of the plan in an order without a pattern. */
static void shuffle_pages(int32_t *order, int64_t num)
{
    uint32_t state = 9;
    for (int64_t i = 0; i < num; i++) {
        int64_t j = ((int64_t)noise_draw(&state) << 16 | noise_draw(&state) >> 8) % (i + 1);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
}

static void deal_pages(bench_rotation *r, const int32_t *order)
{
    const mla_caps *caps = &r->batch.caps;
    const int32_t *lens = r->batch.call.context_lens.host;
    int32_t *row = r->tables.host;
    for (int32_t turn = 0; turn < r->num_turns; turn++) {
        for (int32_t i = 0; i < caps->max_requests; i++, row += caps->table_width) {
            int32_t num = (lens[i] + caps->page_tokens - 1) / caps->page_tokens;
            for (int32_t slot = 0; slot < caps->table_width; slot++) {
                row[slot] = slot < num ? *order++ : -1;
            }
        }
    }
}

static mla_status make_tables(bench_rotation *r, mla_error *err)
{
    mla_context *context = r->device->context;
    size_t table_bytes = r->batch.call.block_table.bytes;
    size_t order_bytes = (size_t)r->batch.caps.num_pages * sizeof(int32_t);
    const mla_need tables = {table_bytes * (size_t)r->num_turns, 1, MLA_SPACE_DEVICE};
    void *order = NULL;
    MLAI_TRY(
        operand_take(context, &tables, MLA_FOR_OTHER, OPERAND_BOTH_SIDES, &r->tables, err));
    MLAI_TRY(mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_OTHER, order_bytes,
                             sizeof(int32_t), &order, err));
    shuffle_pages(order, r->batch.caps.num_pages);
    deal_pages(r, order);
    mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_OTHER, order_bytes, order);
    return operand_send(context, &r->tables, err);
}

/* One turn's, while it is captured. */
typedef struct turn {
    mla_binding *binding;
    const mla_batch *batch;
} turn;

static mla_status enqueue_run(void *user, const bench_device *device, mla_error *err)
{
    const turn *t = user;
    return mla_run(t->binding, t->batch, (mla_stream){device->stream}, err);
}

static mla_status capture_turns(bench_rotation *r, mla_error *err)
{
    mla_buffers buffers = attention_call_buffers(&r->batch.call);
    const char *tables = r->tables.data;
    for (int32_t i = 0; i < r->num_turns; i++) {
        buffers.block_table.data = tables + (size_t)i * buffers.block_table.bytes;
        MLAI_TRY(mla_bind(r->batch.call.plan, &buffers, &r->binding[i], err));
        turn t = {r->binding[i], &r->batch.batch};
        MLAI_TRY(bench_device_capture(r->device, enqueue_run, &t, &r->graph[i], err));
    }
    return MLA_OK;
}

mla_status bench_rotation_open(const bench_device *device, const bench_pool *pool,
                               const bench_shape *shape, mla_plan *plan,
                               const mla_caps *caps, bench_rotation *out, mla_error *err)
{
    bench_batch *batch = &out->batch;
    out->device = device;
    out->pool = pool;
    out->num_turns = bench_rotation_turns(shape, caps->kv_format);
    batch->caps = *caps;
    batch->pool = device->pool;
    batch->max_checked = MAX_CHECKED;
    batch->call.context = device->context;
    batch->call.kv_pool = pool->data;
    batch->kv_scale = caps->kv_format == MLA_KV_FP8 ? &pool->kv_scale : NULL;
    batch->query_scale = caps->query_dtype == MLA_E4M3 ? &query_scale : NULL;
    MLAI_TRY(attention_call_open(&batch->call, plan, caps, err));
    MLAI_TRY(attention_call_scales(&batch->call, batch->kv_scale, batch->query_scale, err));
    fill_query(batch);
    fill_rows(batch, shape);
    MLAI_TRY(make_tables(out, err));
    MLAI_TRY(attention_call_send(&batch->call, err));
    return capture_turns(out, err);
}

void bench_rotation_close(bench_rotation *rotation)
{
    if (!rotation->device) {
        return;
    }
    for (int32_t i = 0; i < BENCH_MAX_TURNS; i++) {
        bench_device_drop(rotation->device, rotation->graph[i]);
        mla_unbind(&rotation->binding[i]);
    }
    operand_give(rotation->device->context, &rotation->tables);
    rotation->batch.call.kv_pool = (operand){0}; /* the pool's */
    attention_call_free(&rotation->batch.call);
    *rotation = (bench_rotation){0};
}

/* The table that a replay had, with the pages of the pool's block that hold the same. */
static mla_status check_turn(bench_rotation *r, int32_t last, mla_error *err)
{
    bench_batch *batch = &r->batch;
    size_t num = batch->call.block_table.bytes / sizeof(int32_t);
    const int32_t *from = (const int32_t *)r->tables.host + (size_t)last * num;
    int32_t *to = batch->call.block_table.host;
    for (size_t i = 0; i < num; i++) {
        to[i] = from[i] < 0 ? from[i] : from[i] % BENCH_BLOCK_PAGES;
    }
    MLAI_TRY(attention_call_fetch(&batch->call, err));
    bench_batch held = *batch;
    held.caps.num_pages = BENCH_BLOCK_PAGES;
    held.call.kv_pool.host = r->pool->block.host;
    return bench_batch_check(&held, err);
}

mla_status bench_rotation_time(bench_rotation *rotation, double *us, mla_error *err)
{
    int32_t num = REPLAYS_SLOW;
    MLAI_TRY(bench_device_time(rotation->device, rotation->graph, rotation->num_turns, num,
                               us, err));
    if (*us < SLOW_US) {
        num = REPLAYS;
        MLAI_TRY(bench_device_time(rotation->device, rotation->graph, rotation->num_turns,
                                   num, us, err));
    }
    return check_turn(rotation, (num - 1) % rotation->num_turns, err);
}
