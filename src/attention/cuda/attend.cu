/* attend.cu - attention of a tile of query rows over one split of their request's keys, in
 * one pass over the keys. Blocks take (request, split, tile) items in turn; which block has an
 * item changes nothing in it. A split's result is a normalised partial, or the output itself
 * where the request has only one. */

constexpr int LANES_PER_ROW = THREADS / TILE_ROWS; /* in softmax */
constexpr int TOKENS_PER_LANE = TILE_TOKENS / LANES_PER_ROW;
/* Neighbouring tokens of a lane; its runs are those of all lanes of the row apart. */
constexpr int TOKEN_RUN = TOKENS_PER_LANE < 4 ? TOKENS_PER_LANE : 4;
/* f16 weights are this many times theirs, so that small ones are not subnormal. */
constexpr float WEIGHT_UNIT = KV_FORMAT == FORMAT_FP8 ? 16384 : 1;
constexpr float LN_2 = 0.693147180559945f;
constexpr float LOG2_E = 1.44269504088896f;

/* A thread's row of the tile and what softmax knows of it. */
struct softmax_row {
    float most, total; /* total: of this thread's tokens */
};

DEVICE int tiles_of(const params &p, int num_rows)
{
    return (int)(((s64)num_rows * p.num_heads + TILE_ROWS - 1) / TILE_ROWS);
}

/* Items of the requests [first, first + WINDOW), summed up to each of them; `before` come
 * before those. */
DEVICE void scan_requests(const params &p, int first, unsigned before)
{
    shared_state &state = state_of();
    int request = first + (int)threadIdx.x;
    unsigned count = 0;
    if (threadIdx.x < WINDOW && request < p.num_requests) {
        request_view r = view_of(p, request);
        count = (unsigned)tiles_of(p, r.num_rows) * (unsigned)r.num_splits;
    }
    for (int step = 1; step < WARP; step *= 2) {
        unsigned below = __shfl_up_sync(ALL_LANES, count, step);
        count += (int)threadIdx.x % WARP >= step ? below : 0;
    }
    if (threadIdx.x % WARP == WARP - 1) {
        state.of_warp[threadIdx.x / WARP] = count;
    }
    __syncthreads();
    for (int w = 0; w < (int)threadIdx.x / WARP; w++) {
        count += state.of_warp[w];
    }
    if (threadIdx.x < WINDOW) {
        state.items_before[threadIdx.x + 1] = count;
    }
    if (threadIdx.x == 0) {
        state.items_before[0] = 0;
        state.window = first;
        state.before_window = before;
    }
    __syncthreads();
}

DEVICE void fill_work(const params &p, work &w, int request, unsigned item)
{
    w.num_before += (unsigned)w.keys.num; /* of the item before this */
    w.request = view_of(p, request);
    unsigned tiles = (unsigned)tiles_of(p, w.request.num_rows);
    s64 packed = (s64)(item % tiles) * TILE_ROWS;
    w.split = (int)(item / tiles);
    w.first = (s64)w.request.first_row * p.num_heads + packed;
    w.num_packed = (int)min((s64)w.request.num_rows * p.num_heads - packed, (s64)TILE_ROWS);
    int first_row = (int)(packed / p.num_heads);
    int last_row = (int)((packed + w.num_packed - 1) / p.num_heads);
    key_range keys = {keys_of_row(p, w.request, first_row).begin,
                      keys_of_row(p, w.request, last_row).end};
    keys = keys_in_split(w.request, keys, w.split);
    int origin = w.request.origin;
    w.keys.table = p.tables + (s64)request * p.table_width;
    w.keys.begin = origin + (keys.begin - origin) / p.split.unit * p.split.unit;
    w.keys.first = keys.begin;
    w.keys.end = keys.end;
    w.keys.num =
        keys.begin < keys.end ? divide_up(keys.end - w.keys.begin, TILE_TOKENS) : 0;
}

/* An item of a request in the window: the request's thread fills it in. */
DEVICE const work &find_work(const params &p, unsigned item)
{
    shared_state &state = state_of();
    unsigned index = item - state.before_window;
    if (threadIdx.x < WINDOW && state.items_before[threadIdx.x] <= index &&
        index < state.items_before[threadIdx.x + 1]) {
        unsigned before = state.items_before[threadIdx.x];
        fill_work(p, state.item, state.window + (int)threadIdx.x, index - before);
        state.item.item = item;
    }
    __syncthreads();
    return state.item;
}

/* Of scores, in units of log 2, and of values: asked for once, by one thread. */
DEVICE void note_scales(const params &p)
{
    if (threadIdx.x == 0) {
        float value = KV_FORMAT == FORMAT_FP8 && p.kv_scale ? *p.kv_scale : 1;
        float query = p.query_scale ? *p.query_scale : 1;
        state_of().value_scale = value;
        state_of().score_scale = p.softmax_scale * query * value * LOG2_E;
    }
}

/* What each row of the tile sees, to shared memory. */
DEVICE void note_seen(const params &p, const work &w)
{
    int within = (int)threadIdx.x;
    if (within < TILE_ROWS) {
        s64 packed = w.first - (s64)w.request.first_row * p.num_heads + within;
        state_of().seen[within] =
            within < w.num_packed ? keys_of_row(p, w.request, (int)(packed / p.num_heads))
                                  : key_range{0, 0};
    }
}

DEVICE int token_of_run(int run)
{
    return (run * LANES_PER_ROW + thread_now() % LANES_PER_ROW) * TOKEN_RUN;
}

/* The scores of a thread's tokens, in units of log 2; -inf where the row does not see one. */
DEVICE void read_scores(float (&score)[TOKENS_PER_LANE], const key_tiles &keys, int tile,
                        int stage, int within)
{
    key_range seen = state_of().seen[within];
    u32 num_seen = (u32)max(min(seen.end, keys.end) - seen.begin, 0);
    float scale = state_of().score_scale;
#pragma unroll
    for (int run = 0; run < TOKENS_PER_LANE / TOKEN_RUN; run++) {
        int first = token_of_run(run);
        const float *from = scores_of(0) + score_at(within, first);
        const u8 *is_valid = state_of().is_valid[stage] + first;
        u32 key = (u32)keys.begin + (u32)tile * TILE_TOKENS + first - (u32)seen.begin;
        float sum[TOKEN_RUN] = {};
#pragma unroll
        for (int group = 0; group < DIM_GROUPS; group++) {
            add_floats(sum, from + group * TILE_ROWS * SCORE_STRIDE);
        }
#pragma unroll
        for (int i = 0; i < TOKEN_RUN; i++) {
            bool is_seen = key + i < num_seen && is_valid[i];
            score[run * TOKEN_RUN + i] = is_seen ? sum[i] * scale : minus_infinity();
        }
    }
}

DEVICE u32 weight_pair(float low, float high)
{
    return IS_BF16 ? bf16x2(low, high) : f16x2(low * WEIGHT_UNIT, high * WEIGHT_UNIT);
}

/* A run of weights, as wide as it is. */
DEVICE void write_weights(int within, int first, const float *weight)
{
    int at = within * WEIGHT_STRIDE + first;
    if constexpr (IS_G128) {
        float *to = (float *)weights_of() + at;
#pragma unroll
        for (int i = 0; i < TOKEN_RUN; i++) {
            to[i] = weight[i];
        }
    } else {
        u16 *to = (u16 *)weights_of() + at;
        if constexpr (TOKEN_RUN == 4) {
            *(uint2 *)to = make_uint2(weight_pair(weight[0], weight[1]),
                                      weight_pair(weight[2], weight[3]));
        } else if constexpr (TOKEN_RUN == 2) {
            *(u32 *)to = weight_pair(weight[0], weight[1]);
        } else {
            *to = (u16)weight_pair(weight[0], 0);
        }
    }
}

/* Scores in shared memory to weights there, and by how much what was summed so far shrinks. */
DEVICE void softmax_tile(softmax_row &row, const key_tiles &keys, int tile, int stage)
{
    int within = thread_now() / LANES_PER_ROW;
    float score[TOKENS_PER_LANE];
    float most = row.most;
    read_scores(score, keys, tile, stage, within);
#pragma unroll
    for (int i = 0; i < TOKENS_PER_LANE; i++) {
        most = fmaxf(most, score[i]);
    }
#pragma unroll
    for (int step = LANES_PER_ROW / 2; step > 0; step /= 2) {
        most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, step));
    }
    float base = most == minus_infinity() ? 0 : most;
    float shrink = exp2_fast(row.most - base);
    row.total *= shrink;
#pragma unroll
    for (int i = 0; i < TOKENS_PER_LANE; i++) {
        score[i] = exp2_fast(score[i] - base);
        row.total += score[i];
    }
#pragma unroll
    for (int run = 0; run < TOKENS_PER_LANE / TOKEN_RUN; run++) {
        write_weights(within, token_of_run(run), score + run * TOKEN_RUN);
    }
    row.most = most;
    if (threadIdx.x % LANES_PER_ROW == 0) {
        state_of().rescale[within] = shrink;
    }
}

/* Totals to shared memory, lse to where it belongs. */
DEVICE void finish_softmax(const params &p, const work &w, softmax_row &row)
{
    int within = (int)threadIdx.x / LANES_PER_ROW;
    float total = row.total;
#pragma unroll
    for (int step = LANES_PER_ROW / 2; step > 0; step /= 2) {
        total += __shfl_xor_sync(ALL_LANES, total, step);
    }
    if (threadIdx.x % LANES_PER_ROW == 0) {
        state_of().total[within] = total;
        if (within < w.num_packed) {
            s64 packed = w.first + within;
            float lse =
                total == 0 ? minus_infinity() : (row.most + log2_fast(total)) * LN_2;
            if (w.request.num_splits > 1) {
                p.partial_lse[packed * p.split.max_splits + w.split] = lse;
            } else {
                p.lse[packed] = lse;
            }
        }
    }
}

/* Where a result goes. */
struct to_f32 {
    float *data;
    DEVICE void write(s64 at, float x, float y) const
    {
        *(float2 *)(data + at) = make_float2(x, y);
    }
};
struct to_bf16 {
    u16 *data;
    DEVICE void write(s64 at, float x, float y) const
    {
        *(u32 *)(data + at) = bf16x2(x, y);
    }
};

/* A lane's columns of one row, `half` 0 or 1 of 16 rows: see values.cu for where they are. */
template <typename TO>
DEVICE void write_row(const TO &to, s64 at, int lane, const float (&o)[RUN][4], int half,
                      float by)
{
#pragma unroll
    for (int j = 0; j < RUN; j += IS_BF16 ? 1 : 2) {
        if constexpr (IS_BF16) {
            to.write(at + 8 * j + lane % 4 * 2, o[j][2 * half] * by,
                     o[j][2 * half + 1] * by);
        } else {
            s64 first = at + lane % 4 * 2 * RUN + j;
            to.write(first, o[j][2 * half] * by, o[j + 1][2 * half] * by);
            to.write(first + RUN, o[j][2 * half + 1] * by, o[j + 1][2 * half + 1] * by);
        }
    }
}

/* row_stride: between packed rows; at: of the tile's first. */
template <typename TO>
DEVICE void write_rows(const TO &to, s64 at, s64 row_stride, int num, float value_scale,
                       const output_part &out, int warp, int lane)
{
#pragma unroll
    for (int row = 0; row < 2 * ROW_TILES; row++) {
        int within = row * 8 + lane / 4;
        float total = state_of().total[within];
        float by = total == 0 ? 0 : value_scale / (total * WEIGHT_UNIT);
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) {
            if (within < num && has_block(warp, block)) {
                write_row(to, at + within * row_stride + column_of_block(warp, block), lane,
                          out.o[block][row / 2], row % 2, by);
            }
        }
    }
}

DEVICE void write_output(const params &p, const work &w, const output_part &out, int warp,
                         int lane)
{
    float scale = state_of().value_scale;
    int num = w.num_packed;
    if (w.request.num_splits > 1) {
        s64 stride = (s64)p.split.max_splits * LATENT;
        s64 at = w.first * stride + (s64)w.split * LATENT;
        write_rows(to_f32{p.partial}, at, stride, num, scale, out, warp, lane);
    } else if (p.output_dtype == MLAI_CUDA_OUTPUT_F32) {
        write_rows(to_f32{(float *)p.output}, w.first * LATENT, LATENT, num, scale, out,
                   warp, lane);
    } else {
        write_rows(to_bf16{(u16 *)p.output}, w.first * LATENT, LATENT, num, scale, out,
                   warp, lane);
    }
}

/* Where arithmetic decides, scores do not queue behind copies. */
#if __CUDA_ARCH__ >= 900
constexpr bool IS_COPY_LATE = IS_G128 && ROW_TILES == 2;
#else
constexpr bool IS_COPY_LATE = false;
#endif

/* A tile of an item by its number among all that the block has: the wide class counts them,
 * because its barriers do. */
DEVICE unsigned number_of_tile(const work &w, int tile)
{
    return (IS_WIDE ? w.num_before : 0) + (unsigned)tile;
}

/* Starts the copy of a tile to its stage, which is free. page: its; then that of the next. */
DEVICE void start_tile(const params &p, const work &w, int tile, int &page)
{
    if (tile < w.keys.num) {
        copy_tile(p, w.keys, tile, stage_of_tile(number_of_tile(w, tile)), page);
        page = page_of_thread(p, w.keys, tile + 1);
    }
    copy_commit();
}

/* Copies run NUM_STAGES - 1 tiles ahead; a tile's stage is free once the block has passed the
 * barrier of the next one. Threads ask again who they are: registers are dear. */
DEVICE void attend_work(const params &p, const work &w)
{
    constexpr int AHEAD = NUM_STAGES - 1;
    int page = page_of_thread(p, w.keys, 0);
#pragma unroll 1
    for (int tile = 0; tile < AHEAD; tile++) {
        start_tile(p, w, tile, page);
    }
    query_part query;
    load_query(p, w.first, w.num_packed, thread_now() / WARP, thread_now() % WARP, query);
    output_part out = {};
    softmax_row row = {minus_infinity(), 0};
    note_seen(p, w);
    for (int tile = 0; tile < w.keys.num; tile++) {
        wait_for_tile(number_of_tile(w, tile));
        __syncthreads();
        if (!IS_COPY_LATE) {
            start_tile(p, w, tile + AHEAD, page);
        }
        int stage = stage_of_tile(number_of_tile(w, tile));
        score_tile(query, stage, thread_now() / WARP, thread_now() % WARP);
        if (IS_COPY_LATE) {
            start_tile(p, w, tile + AHEAD, page);
        }
        __syncthreads();
        softmax_tile(row, w.keys, tile, stage);
        __syncthreads();
        add_values(out, stage, thread_now() / WARP, thread_now() % WARP);
    }
    finish_softmax(p, w, row);
    __syncthreads();
    write_output(p, w, out, thread_now() / WARP, thread_now() % WARP);
}

/* The window of the item's request. False where there is no such item. */
DEVICE bool find_window(const params &p, unsigned item)
{
    shared_state &state = state_of();
    __syncthreads();
    while (item - state.before_window >= state.items_before[WINDOW]) {
        int first = state.window + WINDOW;
        unsigned before = state.before_window + state.items_before[WINDOW];
        if (first >= p.num_requests) {
            return false;
        }
        __syncthreads();
        scan_requests(p, first, before);
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_UNIT)
    attend(const __grid_constant__ params p)
{
    let_next_start();
    note_scales(p);
    init_stages();
    scan_requests(p, 0, 0);
    for (unsigned item = blockIdx.x;; item = state_of().item.item + gridDim.x) {
        if (!find_window(p, item)) {
            return;
        }
        const work &w = find_work(p, item);
        if (w.keys.num > 0 || w.request.num_splits == 1) {
            attend_work(p, w);
        }
    }
}
