/* launch.c - grids and parameters of the CUDA programs. */
#include "attention/cuda/programs.h"

enum { THREADS = 256, APPEND_ROWS = 8 /* a warp each */, MAX_BLOCKS = 1 << 30 };

/* A division of numbers below 2^31 as a multiplication: exact, because the multiplier is above
 * 2^shift / by by less than 2^(shift - 31) / by, with 2^(shift - 31) >= by. */
static void divide_by(int32_t by, unsigned *magic, int *shift)
{
    *shift = 31;
    while (INT64_C(1) << (*shift - 31) < by) {
        (*shift)++;
    }
    *magic = (unsigned)(((UINT64_C(1) << *shift) + (uint64_t)by - 1) / (uint64_t)by);
}

struct mlai_cuda_attend_params mlai_cuda_attend_params_of(const mlai_cuda_shape *shape,
                                                          const mlai_geometry *geometry,
                                                          const mla_buffers *buffers,
                                                          const mla_batch *batch)
{
    const mla_caps *caps = &geometry->caps;
    unsigned char *workspace = buffers->workspace.data;
    struct mlai_cuda_attend_params params = {
        .pool = buffers->kv_pool.data,
        .query = buffers->query.data,
        .tables = buffers->block_table.data,
        .lens = buffers->context_lens.data,
        .starts = buffers->query_starts.data,
        .kv_scale = buffers->kv_scale.data,
        .query_scale = buffers->query_scale.data,
        .output = buffers->output.data,
        .lse = buffers->lse.data,
        .partial = shape->has_merge ? (float *)(void *)workspace : NULL,
        .partial_lse = shape->has_merge
                           ? (float *)(void *)(workspace + shape->partial_lse_offset)
                           : NULL,
        .num_pages = caps->num_pages,
        .page_stride_bytes = (int64_t)geometry->page_stride_bytes,
        .split = shape->split,
        .softmax_scale = caps->softmax_scale,
        .num_heads = caps->num_heads,
        .page_tokens = caps->page_tokens,
        .table_width = caps->table_width,
        .causal = caps->causal,
        .window = caps->window,
        .num_requests = batch->num_requests,
        .num_query_rows = batch->num_query_rows,
        .query_dtype = (int)caps->query_dtype,
        .output_dtype = (int)caps->output_dtype,
    };
    divide_by(caps->page_tokens, &params.page_magic, &params.page_shift);
    return params;
}

/* Blocks take items in turn, so that more than are resident would only come late. */
mlai_cuda_grid mlai_cuda_attend_grid(const mlai_cuda_shape *shape,
                                     const mlai_geometry *geometry, const mla_batch *batch)
{
    int64_t heads = geometry->caps.num_heads;
    int64_t tiles = heads * batch->num_query_rows / shape->tile_rows + batch->num_requests;
    int64_t items = tiles * shape->split.max_splits;
    int64_t blocks = items < shape->num_slots ? items : shape->num_slots;
    return (mlai_cuda_grid){
        .blocks = batch->num_query_rows > 0 ? (uint32_t)blocks : 0,
        .blocks_y = 1,
        .threads = (uint32_t)shape->num_threads,
        .shared_bytes = shape->shared_bytes,
    };
}

/* Columns are shared out only where rows alone do not fill the device. A constant of the
 * plan, because it decides the order of a sum. */
static uint32_t merge_slices(const mlai_cuda_shape *shape, const mlai_geometry *geometry)
{
    enum { SLICE = 64, FEW_ROWS = 256, SOME_ROWS = 1024 };
    int64_t rows = (int64_t)geometry->caps.max_query_rows * geometry->caps.num_heads;
    int32_t most = shape->latent_dim / SLICE;
    return rows <= FEW_ROWS                     ? (uint32_t)most
           : rows <= SOME_ROWS && most % 4 == 0 ? (uint32_t)most / 4
                                                : 1;
}

mlai_cuda_grid mlai_cuda_merge_grid(const mlai_cuda_shape *shape,
                                    const mlai_geometry *geometry, const mla_batch *batch)
{
    int64_t rows = (int64_t)batch->num_query_rows * geometry->caps.num_heads;
    return (mlai_cuda_grid){
        .blocks = (uint32_t)(rows < MAX_BLOCKS ? rows : MAX_BLOCKS),
        .blocks_y = merge_slices(shape, geometry),
        .threads = THREADS,
        .shared_bytes = 0,
    };
}

struct mlai_cuda_append_params mlai_cuda_append_params_of(const mlai_geometry *geometry,
                                                          const mla_append_args *args)
{
    return (struct mlai_cuda_append_params){
        .rows = args->rows.data,
        .slots = args->slots.data,
        .kv_scale = args->kv_scale.data,
        .pool = args->kv_pool.data,
        .num_rows = args->num_rows,
        .num_pages = geometry->caps.num_pages,
        .page_stride_bytes = (int64_t)geometry->page_stride_bytes,
        .page_tokens = geometry->caps.page_tokens,
        .rows_are_f32 = args->rows_dtype == MLA_F32,
    };
}

mlai_cuda_grid mlai_cuda_append_grid(const mla_append_args *args)
{
    int64_t blocks = (args->num_rows + APPEND_ROWS - 1) / APPEND_ROWS;
    return (mlai_cuda_grid){
        .blocks = (uint32_t)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS),
        .blocks_y = 1,
        .threads = THREADS,
    };
}
