/* tiles.cu - KV rows into shared memory, a tile of TILE_TOKENS at a time. A token whose page
 * is not in the pool, or that the block's rows do not see, becomes zeros and is marked. */

constexpr int FORMAT_BF16 = 1; /* mla_kv_format's values */
constexpr int FORMAT_FP8 = 2;
constexpr int FORMAT_G128 = 3;
constexpr bool IS_BF16 = KV_FORMAT == FORMAT_BF16;
constexpr bool IS_G128 = KV_FORMAT == FORMAT_G128;

constexpr int GROUP = 128;
constexpr int FIXED_BYTES = 2304; /* shared_state, rounded up */
constexpr int ROW_TILES = TILE_ROWS / 16;
constexpr int WINDOW = 256;                   /* requests scanned at once */
constexpr int SCORE_STRIDE = TILE_TOKENS + 8; /* floats: eight banks apart */
constexpr int STAGE_BYTES = TILE_TOKENS * ROW_STRIDE;
constexpr int COPY_BYTES = ROW_BYTES % 16 == 0 ? 16 : ROW_BYTES % 8 == 0 ? 8 : 4;
constexpr int LANES_PER_COPY = THREADS / TILE_TOKENS;

/* The keys that a block works on. */
struct key_tiles {
    const int *table;
    int first, end; /* the keys that some row sees */
    int begin;      /* of the first tile */
    int num;        /* of tiles */
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
    unsigned items_before[WINDOW + 1];     /* of the requests in the window */
    __align__(16) unsigned of_warp[WARPS]; /* apart: loads of it may be widened */
    float score_scale, value_scale;
    work item;
    float rescale[TILE_ROWS], total[TILE_ROWS], most[TILE_ROWS];
    key_range seen[TILE_ROWS];
    u8 is_valid[NUM_STAGES][TILE_TOKENS];
};
static_assert(sizeof(shared_state) <= FIXED_BYTES, "shape.c counts so much");

extern __shared__ __align__(128) u8 shared_bytes[];

DEVICE shared_state &state_of()
{
    return *(shared_state *)shared_bytes;
}
DEVICE u8 *stage_of(int stage)
{
    return shared_bytes + FIXED_BYTES + stage * STAGE_BYTES;
}
DEVICE float *scores_of(int dim_group)
{
    return (float *)stage_of(NUM_STAGES) + dim_group * TILE_ROWS * SCORE_STRIDE;
}
DEVICE void *weights_of()
{
    return scores_of(DIM_GROUPS);
}

/* A thread copies pieces of one row of a tile, always the same one; LANES_PER_COPY neighbours
 * share it. */
DEVICE u32 key_of_thread(const key_tiles &keys, int tile)
{
    return (u32)keys.begin + (u32)tile * TILE_TOKENS + thread_now() / LANES_PER_COPY;
}

DEVICE u32 slot_of_key(const params &p, u32 key)
{
    return (u32)((u64)key * p.page_magic >> p.page_shift);
}

/* The page of the thread's row: asked for a tile ahead, so that nobody waits for the table. -1
 * where nobody sees the row. */
DEVICE int page_of_thread(const params &p, const key_tiles &keys, int tile)
{
    u32 key = key_of_thread(keys, tile);
    bool is_seen = key >= (u32)keys.first && key < (u32)keys.end;
    return is_seen ? keys.table[slot_of_key(p, key)] : -1;
}

/* Starts the copy of a tile to a stage; page: what page_of_thread said. */
DEVICE void copy_tile(const params &p, const key_tiles &keys, int tile, int stage, int page)
{
    constexpr int PIECES = ROW_BYTES / COPY_BYTES;
    int row = thread_now() / LANES_PER_COPY;
    int lane = thread_now() % LANES_PER_COPY;
    u32 key = key_of_thread(keys, tile);
    u32 within = key - slot_of_key(p, key) * (u32)p.page_tokens;
    bool is_valid = page >= 0 && page < p.num_pages;
    s64 offset = (s64)(is_valid ? page : 0) * p.page_stride_bytes + (s64)within * ROW_BYTES;
    const u8 *from = p.pool + offset + lane * COPY_BYTES;
    u32 to = shared_address(stage_of(stage)) + row * ROW_STRIDE + lane * COPY_BYTES;
    if (lane == 0) {
        state_of().is_valid[stage][row] = is_valid;
    }
#pragma unroll
    for (int piece = 0; piece < PIECES; piece += LANES_PER_COPY) {
        if (piece + LANES_PER_COPY <= PIECES || piece + lane < PIECES) {
            copy_async<COPY_BYTES>(to + piece * COPY_BYTES, from + piece * COPY_BYTES,
                                   is_valid);
        }
    }
}
