/* bench_pool.c - fills a pool on the device: see bench_pool.h. */
#include "cli/bench_pool.h"

#include <math.h>
#include <string.h>

#include "attention/context.h"
#include "attention/row_layout.h"
#include "base/status.h"
#include "cli/noise.h"

enum { DRAWN_ROWS = 4096, MAX_WIDTH = 1536 };
static const float fp8_scale = 0.0371F; /* normal numbers up to 16.6 */

/* Twelve uniform numbers, less their mean: normal enough. */
static float draw_normal(uint32_t *state)
{
    enum { TERMS = 12 };
    float sum = -TERMS / 2.0F;
    for (int i = 0; i < TERMS; i++) {
        sum += (float)noise_draw(state) * 0x1p-24F;
    }
    return sum;
}

/* Rows that are drawn, and then those again in any order. */
static void fill_block(const bench_pool *pool, const mla_caps *caps)
{
    static float values[MAX_WIDTH]; /* 1024 + 512 at most */
    uint32_t state = 5;
    unsigned char *rows = pool->block.host;
    size_t row_bytes = pool->page_bytes / (size_t)caps->page_tokens;
    size_t num = (size_t)BENCH_BLOCK_PAGES * (size_t)caps->page_tokens;
    int32_t width = caps->latent_dim + caps->rope_dim;
    for (size_t i = 0; i < num; i++) {
        if (i >= DRAWN_ROWS) {
            memcpy(rows + i * row_bytes, rows + noise_draw(&state) % DRAWN_ROWS * row_bytes,
                   row_bytes);
            continue;
        }
        for (int32_t d = 0; d < width; d++) {
            values[d] = draw_normal(&state);
        }
        mlai_row_encode(caps->kv_format, caps->latent_dim, caps->rope_dim, values,
                        pool->kv_scale, rows + i * row_bytes);
    }
}

/* Twice as much each time. */
static mla_status repeat_block(const bench_device *device, const bench_pool *pool,
                               mla_error *err)
{
    mlai_cuda *cuda = device->cuda;
    mlai_cu_pointer data = (uintptr_t)pool->data.data;
    size_t bytes = pool->data.bytes;
    size_t done = pool->block.bytes;
    MLAI_TRY(pool->context->ops->upload(pool->context, pool->data.data, pool->block.host,
                                        done, err));
    while (done < bytes) {
        size_t piece = done < bytes - done ? done : bytes - done;
        MLAI_TRY(
            MLAI_CU(cuda, cuMemcpyDtoDAsync(data + done, data, piece, device->stream)));
        done += piece;
    }
    return MLAI_CU(cuda, cuStreamSynchronize(device->stream));
}

mla_status bench_pool_open(const bench_device *device, const mla_caps *caps,
                           int64_t num_pages, bench_pool *out, mla_error *err)
{
    size_t page_bytes = (size_t)caps->page_tokens *
                        mla_kv_row_bytes(caps->kv_format, caps->latent_dim, caps->rope_dim);
    int64_t num_blocks = (num_pages + BENCH_BLOCK_PAGES - 1) / BENCH_BLOCK_PAGES;
    size_t block_bytes = BENCH_BLOCK_PAGES * page_bytes;
    const mla_need block = {block_bytes, 1, MLA_SPACE_HOST};
    const mla_need all = {block_bytes * (size_t)num_blocks, 1, MLA_SPACE_DEVICE};
    *out = (bench_pool){.context = device->context,
                        .kv_format = caps->kv_format,
                        .page_bytes = page_bytes,
                        .num_pages = num_blocks * BENCH_BLOCK_PAGES,
                        .kv_scale = fp8_scale};
    MLAI_TRY(operand_take(device->context, &block, MLA_FOR_OTHER, OPERAND_BOTH_SIDES,
                          &out->block, err));
    MLAI_TRY(operand_take(device->context, &all, MLA_FOR_KV, OPERAND_DEVICE_ONLY,
                          &out->data, err));
    fill_block(out, caps);
    return repeat_block(device, out, err);
}

void bench_pool_close(bench_pool *pool)
{
    if (pool->context) {
        operand_give(pool->context, &pool->data);
        operand_give(pool->context, &pool->block);
    }
    *pool = (bench_pool){0};
}
