/* tiles.cu - KV rows into shared memory, a tile of TILE_TOKENS at a time. A token whose page
 * is not in the pool, or that the block's rows do not see, becomes zeros and is marked. */

constexpr int FORMAT_BF16 = 1; /* mla_kv_format's values */
constexpr int FORMAT_FP8 = 2;
constexpr int FORMAT_G128 = 3;
constexpr bool IS_BF16 = KV_FORMAT == FORMAT_BF16;
constexpr bool IS_G128 = KV_FORMAT == FORMAT_G128;

constexpr int GROUP = 128;
constexpr int ROW_TILES = TILE_ROWS / 16;
constexpr bool IS_WIDE = TILE_ROWS == 64;
constexpr int FIXED_BYTES = IS_WIDE ? 3072 : 2304; /* shared_state, rounded up */
constexpr int WINDOW = 256;                        /* requests scanned at once */
constexpr int WEIGHT_STRIDE = TILE_TOKENS + 8;     /* rows begin in different banks */
constexpr int SCORE_STRIDE = IS_WIDE ? TILE_TOKENS : TILE_TOKENS + 8; /* floats */
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
    unsigned item;       /* of the launch */
    unsigned num_before; /* tiles that the block has had */
    request_view request;
    int split;
    s64 first;      /* packed (query row, head) of the batch */
    int num_packed; /* of them, in this tile */
    key_tiles keys;
};

struct shared_state {
    unsigned items_before[WINDOW + 1];     /* of the requests in the window */
    int window;                            /* its first request */
    unsigned before_window;                /* items of the requests before that */
    __align__(16) unsigned of_warp[WARPS]; /* apart: loads of it may be widened */
    float score_scale, value_scale;
    work item;
    float rescale[TILE_ROWS], total[TILE_ROWS], most[TILE_ROWS];
    key_range seen[TILE_ROWS];
    u8 is_valid[NUM_STAGES][TILE_TOKENS];
    u64 has_landed[NUM_STAGES]; /* barriers; the wide class */
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

/* Where a score is in its group. Rows are eight banks apart; in the wide class, which has no
 * room for padding, by turning bits of the token. */
DEVICE int score_at(int row, int token)
{
    if constexpr (IS_WIDE) {
        token ^= (row & 1) << 4 | (row & 2) << 2;
    }
    return row * SCORE_STRIDE + token;
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

/* Pieces of a row, every LANES_PER_COPY-th; zeros if not `is_valid`. */
DEVICE void copy_pieces(u32 to, const u8 *from, int lane, bool is_valid)
{
    constexpr int PIECES = ROW_BYTES / COPY_BYTES;
#pragma unroll
    for (int piece = 0; piece < PIECES; piece += LANES_PER_COPY) {
        if (piece + LANES_PER_COPY <= PIECES || piece + lane < PIECES) {
            copy_async<COPY_BYTES>(to + piece * COPY_BYTES, from + piece * COPY_BYTES,
                                   is_valid);
        }
    }
}

DEVICE u32 barrier_of(int stage)
{
    return shared_address(&state_of().has_landed[stage]);
}

/* By the copy engine, which costs one instruction a row; zeros are written. */
DEVICE void copy_whole(u32 to, const u8 *from, int lane, int stage, bool is_valid)
{
    if (!is_valid) {
        for (int at = lane * 16; at < ROW_BYTES; at += LANES_PER_COPY * 16) {
            store_zeros_16(to + at);
        }
        order_before_copies();
    }
    __syncwarp();
    if (lane == 0) {
        if (is_valid) {
            barrier_arrive_expecting(barrier_of(stage), ROW_BYTES);
            copy_bulk(to, from, ROW_BYTES, barrier_of(stage));
        } else {
            barrier_arrive(barrier_of(stage));
        }
    }
}

/* Starts the copy of a tile to a stage; page: what page_of_thread said. */
DEVICE void copy_tile(const params &p, const key_tiles &keys, int tile, int stage, int page)
{
    int row = thread_now() / LANES_PER_COPY;
    int lane = thread_now() % LANES_PER_COPY;
    u32 key = key_of_thread(keys, tile);
    u32 within = key - slot_of_key(p, key) * (u32)p.page_tokens;
    bool is_valid = page >= 0 && page < p.num_pages;
    s64 offset = (s64)(is_valid ? page : 0) * p.page_stride_bytes + (s64)within * ROW_BYTES;
    const u8 *from = p.pool + offset;
    u32 to = shared_address(stage_of(stage)) + row * ROW_STRIDE;
    if (lane == 0) {
        state_of().is_valid[stage][row] = is_valid;
    }
    if constexpr (IS_WIDE) {
        copy_whole(to, from, lane, stage, is_valid);
    } else {
        copy_pieces(to + lane * COPY_BYTES, from + lane * COPY_BYTES, lane, is_valid);
    }
}

/* A tile by its number among all that the block has: where it is, and which use that is of the
 * stage. */
DEVICE int stage_of_tile(unsigned number)
{
    return (int)(number % NUM_STAGES);
}

DEVICE void init_stages()
{
    if (threadIdx.x == 0) {
        state_of().item.num_before = 0;
        state_of().item.keys.num = 0;
    }
    if (IS_WIDE && threadIdx.x == 0) {
        for (int stage = 0; stage < NUM_STAGES; stage++) {
            barrier_init(barrier_of(stage), TILE_TOKENS);
        }
        order_before_copies();
    }
}

/* The tile of a stage has landed, but for what other threads copied: a barrier follows. */
DEVICE void wait_for_tile(unsigned number)
{
    if constexpr (IS_WIDE) {
        barrier_wait(barrier_of(stage_of_tile(number)), number / NUM_STAGES & 1);
    } else {
        copy_wait<NUM_STAGES - 2>();
    }
}
