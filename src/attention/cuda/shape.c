/* shape.c - the constants of a plan: which tile, how much shared memory, how far a request
 * is split. docs/kernels/attend_cuda.md says why these and not others. */
#include "attention/cuda/programs.h"

#include "base/size.h"

enum {
    WARPS_OF_ROW_GROUP = 8, /* 256 threads: scores.cu */
    TOKENS_OF_PRODUCT = 8,
    MAX_LATENT = 1024,
    SMALL_LATENT = 256,   /* up to it, 32 rows of output fit the registers of 256 threads */
    MAX_LATENT_M32 = 512, /* above it the output does not fit the registers */
    MAX_ROPE_STEPS = 8,
    STEP = 16, /* columns of one matrix instruction */
    GROUP = 128,
    MAX_STAGES = 4,
    SHARED_LIMIT = 99 * 1024, /* what every architecture from sm_80 on has */
    SHARED_RESERVED = 1024,   /* taken by the driver from each resident block */
    FIXED_BYTES = 2304,       /* of attend.cu: the scan of requests, and one item */
    WIDE_ROWS = 64,
    WIDE_FIXED_BYTES = 3072,
    WIDE_LIMIT = 227 * 1024, /* what the wide class needs: sm_90, sm_100 */
    WIDE_LEAST_TILES = 6, /* of keys a multiprocessor, or it is filled and emptied only */
    MAX_WAVES = 8,
    MAX_SPLITS = 512, /* merge.cu keeps the weights of as many */
    MIN_SPLIT_TOKENS = 64,
    MAX_SPLIT_TOKENS = 4096,
};

static int32_t up_to(int32_t value, int32_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int64_t ceil_div(int64_t value, int64_t by)
{
    return (value + by - 1) / by;
}

static int32_t dim_groups(int32_t latent_dim)
{
    int32_t groups = 1;
    while (groups * GROUP < latent_dim) {
        groups *= 2;
    }
    return groups;
}

/* Rows begin in different banks: 16 bytes and an even number of them apart. */
static int32_t row_stride(int32_t row_bytes)
{
    int32_t stride = up_to(row_bytes, 16);
    return stride % 32 == 0 ? stride + 16 : stride;
}

static size_t bytes_beside_stages(const mlai_cuda_shape *shape)
{
    size_t rows = (size_t)shape->tile_rows;
    size_t columns = (size_t)shape->tile_tokens + 8;
    size_t weight_bytes = shape->kv_format == MLA_KV_FP8_G128 ? 4 : 2;
    bool is_wide = shape->tile_rows == WIDE_ROWS;
    size_t score_columns = is_wide ? columns - 8 : columns;
    return (is_wide ? WIDE_FIXED_BYTES : FIXED_BYTES) +
           (size_t)shape->num_dim_groups * rows * score_columns * 4 +
           rows * columns * weight_bytes;
}

static size_t shared_bytes(const mlai_cuda_shape *shape)
{
    return bytes_beside_stages(shape) + (size_t)shape->num_stages *
                                            (size_t)shape->tile_tokens *
                                            (size_t)shape->row_stride;
}

/* The longest tile of which two fit, then as many as fit. */
static bool choose_tile(mlai_cuda_shape *shape, bool has_e4m3, size_t limit)
{
    int32_t least = TOKENS_OF_PRODUCT * WARPS_OF_ROW_GROUP / shape->num_dim_groups;
    bool is_short = (shape->tile_rows == 32 && shape->num_dim_groups > 2) ||
                    (shape->kv_format != MLA_KV_BF16 && !has_e4m3); /* or it spills */
    int32_t most = shape->latent_dim > MAX_LATENT_M32 ? 16 : is_short ? 32 : 64;
    most = most < least ? least : most;
    for (shape->tile_tokens = most; shape->tile_tokens >= 16; shape->tile_tokens /= 2) {
        shape->num_stages = 2;
        if (shape->tile_tokens >= least && shared_bytes(shape) <= limit) {
            break;
        }
    }
    if (shape->tile_tokens < 16) {
        return false;
    }
    while (shape->num_stages < MAX_STAGES) {
        shape->num_stages++;
        if (shared_bytes(shape) > limit) {
            shape->num_stages--;
            break;
        }
    }
    shape->shared_bytes = shared_bytes(shape);
    return true;
}

/* Tiles of query rows when the plan is full. */
static int64_t most_tiles(const mlai_geometry *geometry, int32_t tile_rows)
{
    const mla_caps *caps = &geometry->caps;
    int64_t heads = caps->num_heads;
    int64_t requests = caps->max_requests < caps->max_query_rows ? caps->max_requests
                                                                 : caps->max_query_rows;
    int64_t each = ceil_div(heads * caps->max_rows_per_request, tile_rows);
    int64_t by_rows = heads * caps->max_query_rows / tile_rows + requests;
    return requests * each < by_rows ? requests * each : by_rows;
}

static int64_t longest_span(const mlai_geometry *geometry, int32_t unit)
{
    const mla_caps *caps = &geometry->caps;
    int64_t span = caps->max_context_tokens < geometry->table_tokens
                       ? caps->max_context_tokens
                       : geometry->table_tokens;
    int64_t seen = (int64_t)caps->window + caps->max_rows_per_request + unit;
    return caps->window > 0 && seen < span ? seen : span;
}

static void choose_splits(const mlai_geometry *geometry, mlai_cuda_shape *shape)
{
    int64_t tiles = most_tiles(geometry, shape->tile_rows);
    int64_t target = shape->num_slots / tiles;
    int64_t most = MAX_WAVES * (int64_t)shape->num_slots / tiles;
    int64_t useful = ceil_div(longest_span(geometry, shape->tile_tokens), MIN_SPLIT_TOKENS);
    target = target < 1 ? 1 : target;
    most = most < 1 ? 1 : most;
    most = most > MAX_SPLITS ? MAX_SPLITS : most;
    most = most > useful ? useful : most;
    shape->split = (struct mlai_cuda_split_rule){
        .target = (int)target,
        .min_tokens = MIN_SPLIT_TOKENS,
        .max_tokens = MAX_SPLIT_TOKENS,
        .unit = shape->tile_tokens,
        .max_splits = (int)most,
    };
    shape->has_merge = most > 1;
}

static mla_status size_workspace(const mlai_geometry *geometry, mlai_cuda_shape *shape,
                                 mla_error *err)
{
    const mla_caps *caps = &geometry->caps;
    size_t slots;
    size_t lse_bytes;
    shape->partial_lse_offset = 0;
    shape->workspace_bytes = 64;
    if (!shape->has_merge) {
        return MLA_OK;
    }
    bool fits =
        mlai_size_mul((size_t)caps->max_query_rows, (size_t)caps->num_heads, &slots) &&
        mlai_size_mul(slots, (size_t)shape->split.max_splits, &slots) &&
        mlai_size_mul(slots, sizeof(float), &lse_bytes) &&
        mlai_size_mul(lse_bytes, (size_t)caps->latent_dim, &shape->partial_lse_offset) &&
        mlai_size_add(shape->partial_lse_offset, lse_bytes, &shape->workspace_bytes);
    MLAI_CHECK(fits, MLA_ERR_ARGUMENT,
               "%d query rows of %d heads need a workspace larger than memory can be",
               caps->max_query_rows, caps->num_heads);
    return MLA_OK;
}

static mla_status check_supported(const mla_caps *caps, mla_error *err)
{
    MLAI_CHECK(caps->kv_format != MLA_KV_F32, MLA_ERR_UNSUPPORTED,
               "kv_format f32 is the CPU's; CUDA has bf16, fp8 and fp8_g128");
    MLAI_CHECK(caps->query_dtype != MLA_F32, MLA_ERR_UNSUPPORTED,
               "query_dtype is f32; CUDA has bf16 and e4m3, and rounds no query by itself");
    MLAI_CHECK(caps->latent_dim <= MAX_LATENT, MLA_ERR_UNSUPPORTED,
               "latent_dim is %d; CUDA has at most %d", caps->latent_dim, MAX_LATENT);
    int32_t groups = dim_groups(caps->latent_dim);
    MLAI_CHECK(ceil_div(caps->rope_dim / STEP, groups) <= MAX_ROPE_STEPS,
               MLA_ERR_UNSUPPORTED,
               "rope_dim is %d; with a latent_dim of %d CUDA has at most %d",
               caps->rope_dim, caps->latent_dim, MAX_ROPE_STEPS * STEP * groups);
    return MLA_OK;
}

static void choose_programs(mlai_cuda_shape *shape)
{
    static const struct {
        mlai_cuda_program m16, m32, m64, append;
    } of_format[] = {
        [MLA_KV_BF16] = {MLAI_CUDA_ATTEND_BF16_M16, MLAI_CUDA_ATTEND_BF16_M32,
                         MLAI_CUDA_ATTEND_BF16_M64, MLAI_CUDA_APPEND_BF16},
        [MLA_KV_FP8] = {MLAI_CUDA_ATTEND_FP8_M16, MLAI_CUDA_ATTEND_FP8_M32,
                        MLAI_CUDA_ATTEND_FP8_M64, MLAI_CUDA_APPEND_FP8},
        [MLA_KV_FP8_G128] = {MLAI_CUDA_ATTEND_G128_M16, MLAI_CUDA_ATTEND_G128_M32,
                             MLAI_CUDA_ATTEND_G128_M32, MLAI_CUDA_APPEND_G128},
    };
    int format = (int)shape->kv_format;
    shape->append = of_format[format].append;
    shape->attend = shape->tile_rows == WIDE_ROWS ? of_format[format].m64
                    : shape->tile_rows == 32      ? of_format[format].m32
                                                  : of_format[format].m16;
}

/* Whether a plan that is full gives each multiprocessor enough to do with tiles of 64 rows. */
static bool is_wide_worth_it(const mlai_geometry *geometry, const mlai_cuda_device *device)
{
    int64_t key_tiles = ceil_div(longest_span(geometry, STEP), MIN_SPLIT_TOKENS);
    return most_tiles(geometry, WIDE_ROWS) * key_tiles >=
           (int64_t)WIDE_LEAST_TILES * device->num_units;
}

/* Rows of a tile: as many as a request has, as far as the output fits the registers and, for
 * the wide class, the tiles fit the shared memory. */
static int32_t choose_rows(const mlai_geometry *geometry, const mlai_cuda_device *device)
{
    const mla_caps *caps = &geometry->caps;
    int64_t most = (int64_t)caps->num_heads * caps->max_rows_per_request;
    if (most <= 16 || caps->latent_dim > MAX_LATENT_M32) {
        return 16;
    }
    bool is_wide = caps->latent_dim == MAX_LATENT_M32 && most > 32 &&
                   caps->kv_format != MLA_KV_FP8_G128 && /* or it spills */
                   device->shared_block_bytes >= WIDE_LIMIT &&
                   is_wide_worth_it(geometry, device);
    return is_wide ? WIDE_ROWS : 32;
}

mla_status mlai_cuda_shape_of(const mlai_geometry *geometry, const mlai_cuda_device *device,
                              mlai_cuda_shape *out, mla_error *err)
{
    const mla_caps *caps = &geometry->caps;
    MLAI_TRY(check_supported(caps, err));
    mlai_cuda_shape shape = {
        .latent_dim = caps->latent_dim,
        .rope_dim = caps->rope_dim,
        .kv_format = caps->kv_format,
        .row_bytes = (int32_t)geometry->row_bytes,
        .tile_rows = choose_rows(geometry, device),
        .row_stride = row_stride((int32_t)geometry->row_bytes),
        .num_dim_groups = dim_groups(caps->latent_dim),
    };
    shape.num_threads =
        shape.tile_rows == 32 && caps->latent_dim > SMALL_LATENT ? 512 : 256;
    size_t limit = shape.tile_rows == WIDE_ROWS ? WIDE_LIMIT : SHARED_LIMIT;
    limit = device->shared_block_bytes < limit ? device->shared_block_bytes : limit;
    MLAI_CHECK(choose_tile(&shape, device->major * 10 + device->minor >= 89, limit),
               MLA_ERR_UNSUPPORTED,
               "two tiles of %d-byte KV rows do not fit %zu bytes of shared memory",
               shape.row_bytes, limit);
    bool two = shape.tile_rows == 16 && caps->latent_dim <= MAX_LATENT_M32 &&
               2 * (shape.shared_bytes + SHARED_RESERVED) <= device->shared_unit_bytes;
    shape.blocks_per_unit = two ? 2 : 1;
    shape.num_slots = device->num_units * shape.blocks_per_unit;
    choose_programs(&shape);
    choose_splits(geometry, &shape);
    MLAI_TRY(size_workspace(geometry, &shape, err));
    *out = shape;
    return MLA_OK;
}
