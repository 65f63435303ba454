/* tiles.cu - KV rows into shared memory, a tile of TILE_TOKENS at a time. A token whose page
 * is not in the pool, or that the block's rows do not see, becomes zeros and is marked. */

constexpr int FORMAT_BF16 = 1; /* mla_kv_format's values */
constexpr int FORMAT_FP8 = 2;
constexpr int FORMAT_G128 = 3;
constexpr bool IS_BF16 = KV_FORMAT == FORMAT_BF16;
constexpr bool IS_G128 = KV_FORMAT == FORMAT_G128;

constexpr int GROUP = 128;
constexpr int ROW_TILES = TILE_ROWS / 16;
constexpr int SCORE_STRIDE = TILE_TOKENS + 8;  /* floats: eight banks apart */
constexpr int STAGE_BYTES = TILE_TOKENS * ROW_STRIDE;
constexpr int COPY_BYTES = ROW_BYTES % 16 == 0 ? 16 : ROW_BYTES % 8 == 0 ? 8 : 4;
constexpr int ROWS_PER_WARP = TILE_TOKENS / WARPS;

/* The keys that a block works on. */
struct key_tiles {
    const int *table;
    int begin, end; /* the first tile's first key, and one past the last key */
    int num;
};

/* One block's share of work: kept in shared memory, because registers are dear. */
struct work {
    request_view request;
    int split;
    s64 first;      /* packed (query row, head) of the batch */
    int num_packed; /* of them, in this tile */
    key_tiles keys;
};

struct shared_state {
    unsigned items_before[THREADS + 1]; /* of the requests in the window */
    unsigned of_warp[WARPS];
    work item;
    float rescale[TILE_ROWS], total[TILE_ROWS], most[TILE_ROWS];
    key_range seen[TILE_ROWS];
    u8 is_valid[NUM_STAGES][TILE_TOKENS];
};
static_assert(sizeof(shared_state) <= 2048, "shape.c counts so much");

extern __shared__ __align__(128) u8 shared_bytes[];

DEVICE shared_state &state_of() { return *(shared_state *)shared_bytes; }
DEVICE u8 *stage_of(int stage) { return shared_bytes + 2048 + stage * STAGE_BYTES; }
DEVICE float *scores_of(int dim_group)
{
    return (float *)stage_of(NUM_STAGES) + dim_group * TILE_ROWS * SCORE_STRIDE;
}
DEVICE void *weights_of() { return scores_of(DIM_GROUPS); }

/* A lane looks up the page of one of its warp's rows: a tile ahead, so that nobody waits. */
DEVICE int page_of_lane(const params &p, const key_tiles &keys, int tile, int warp, int lane)
{
    s64 key = (s64)keys.begin + (s64)tile * TILE_TOKENS + warp + WARPS * lane;
    if (lane >= ROWS_PER_WARP || key >= keys.end) {
        return -1;
    }
    return keys.table[(u32)key / (u32)p.page_tokens];
}

DEVICE void copy_row(u32 to, const u8 *from, bool is_valid, int lane)
{
    constexpr int PIECES = ROW_BYTES / COPY_BYTES;
#pragma unroll
    for (int piece = 0; piece < PIECES; piece += WARP) {
        if (piece + WARP <= PIECES || piece + lane < PIECES) {
            int at = (piece + lane) * COPY_BYTES;
            copy_async<COPY_BYTES>(to + at, from + at, is_valid);
        }
    }
}

/* Starts the copy of a tile; `page` is what page_of_lane said of it. */
DEVICE void copy_tile(const params &p, const key_tiles &keys, int tile, int page, int warp,
                      int lane)
{
    int stage = tile % NUM_STAGES;
    s64 offset = -1;
    if (lane < ROWS_PER_WARP) {
        u32 key = (u32)keys.begin + (u32)tile * TILE_TOKENS + warp + WARPS * lane;
        if (page >= 0 && page < p.num_pages) {
            offset = page * p.page_stride_bytes + (s64)(key % (u32)p.page_tokens) * ROW_BYTES;
        }
        state_of().is_valid[stage][warp + WARPS * lane] = offset >= 0;
    }
    u32 to = shared_address(stage_of(stage)) + warp * ROW_STRIDE;
#pragma unroll
    for (int i = 0; i < ROWS_PER_WARP; i++) {
        s64 from = __shfl_sync(ALL_LANES, offset, i);
        copy_row(to + i * WARPS * ROW_STRIDE, p.pool + (from < 0 ? 0 : from), from >= 0, lane);
    }
}
