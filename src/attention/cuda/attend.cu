/* attend.cu - attention of a tile of query rows over one split of their request's keys, in
 * one pass over the keys. Blocks take (request, split, tile) items in turn; which block has an
 * item changes nothing in it. A split's result is a normalised partial, or the output itself
 * where the request has only one. */

constexpr int LANES_PER_ROW = THREADS / TILE_ROWS; /* in softmax */
constexpr int TOKENS_PER_LANE = TILE_TOKENS / LANES_PER_ROW;
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

/* Items of the requests [first, first + THREADS), summed up to each of them. */
DEVICE void scan_requests(const params &p, int first)
{
    shared_state &state = state_of();
    int request = first + (int)threadIdx.x;
    unsigned count = 0;
    if (request < p.num_requests) {
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
    state.items_before[threadIdx.x + 1] = count;
    if (threadIdx.x == 0) {
        state.items_before[0] = 0;
    }
    __syncthreads();
}

DEVICE void fill_work(const params &p, work &w, int request, unsigned item)
{
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
    w.keys.end = keys.end;
    w.keys.num = keys.begin < keys.end ? divide_up(keys.end - w.keys.begin, TILE_TOKENS) : 0;
}

/* Item `index` of the window that begins at request `first`: its thread fills it in. */
DEVICE const work &find_work(const params &p, int first, unsigned index)
{
    shared_state &state = state_of();
    unsigned before = state.items_before[threadIdx.x];
    if (before <= index && index < state.items_before[threadIdx.x + 1]) {
        fill_work(p, state.item, first + (int)threadIdx.x, index - before);
    }
    __syncthreads();
    return state.item;
}

/* What each row of the tile sees, to shared memory. */
DEVICE void note_seen(const params &p, const work &w)
{
    int within = (int)threadIdx.x;
    if (within < TILE_ROWS) {
        s64 packed = w.first - (s64)w.request.first_row * p.num_heads + within;
        state_of().seen[within] = within < w.num_packed
                                      ? keys_of_row(p, w.request, (int)(packed / p.num_heads))
                                      : key_range{0, 0};
    }
}

/* The score of a token, in units of log 2; -inf where the row does not see it. */
DEVICE float score_of(key_range seen, const key_tiles &keys, int tile, int token, float scale)
{
    int within = (int)threadIdx.x / LANES_PER_ROW;
    float sum = 0;
#pragma unroll
    for (int group = 0; group < DIM_GROUPS; group++) {
        sum += scores_of(group)[within * SCORE_STRIDE + token];
    }
    s64 key = (s64)keys.begin + (s64)tile * TILE_TOKENS + token;
    bool is_seen = key >= seen.begin && key < seen.end && key < keys.end &&
                   state_of().is_valid[tile % NUM_STAGES][token];
    return is_seen ? sum * scale : minus_infinity();
}

DEVICE void write_weight(int within, int token, float weight)
{
    if constexpr (IS_G128) {
        ((float *)weights_of())[within * SCORE_STRIDE + token] = weight;
    } else {
        u32 pair = IS_BF16 ? bf16x2(weight, 0) : f16x2(weight * WEIGHT_UNIT, 0);
        ((u16 *)weights_of())[within * SCORE_STRIDE + token] = (u16)pair;
    }
}

/* Scores in shared memory to weights there, and by how much what was summed so far shrinks. */
DEVICE void softmax_tile(softmax_row &row, const key_tiles &keys, int tile, float scale)
{
    int within = (int)threadIdx.x / LANES_PER_ROW;
    int first = (int)threadIdx.x % LANES_PER_ROW * TOKENS_PER_LANE;
    float score[TOKENS_PER_LANE];
    float most = row.most;
    key_range seen = state_of().seen[within];
#pragma unroll
    for (int i = 0; i < TOKENS_PER_LANE; i++) {
        score[i] = score_of(seen, keys, tile, first + i, scale);
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
        float weight = exp2_fast(score[i] - base);
        row.total += weight;
        write_weight(within, first + i, weight);
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
            float lse = total == 0 ? minus_infinity() : (row.most + log2_fast(total)) * LN_2;
            if (w.request.num_splits > 1) {
                p.partial_lse[packed * p.split.max_splits + w.split] = lse;
            } else {
                p.lse[packed] = lse;
            }
        }
    }
}

/* Two neighbouring columns of the output or of a partial. */
DEVICE void write_pair(const params &p, const work &w, s64 packed, int column, float x, float y)
{
    if (w.request.num_splits > 1) {
        s64 at = (packed * p.split.max_splits + w.split) * LATENT + column;
        *(float2 *)(p.partial + at) = make_float2(x, y);
    } else if (p.output_dtype == MLAI_CUDA_OUTPUT_F32) {
        *(float2 *)((float *)p.output + packed * LATENT + column) = make_float2(x, y);
    } else {
        *(u32 *)((u16 *)p.output + packed * LATENT + column) = bf16x2(x, y);
    }
}

/* A lane's columns of one row, `half` 0 or 1 of 16 rows: see values.cu for where they are. */
DEVICE void write_row(const params &p, const work &w, s64 packed, int column, int lane,
                      const float (&o)[RUN][4], int half, float by)
{
#pragma unroll
    for (int j = 0; j < RUN; j += IS_BF16 ? 1 : 2) {
        if constexpr (IS_BF16) {
            write_pair(p, w, packed, column + 8 * j + lane % 4 * 2, o[j][2 * half] * by,
                       o[j][2 * half + 1] * by);
        } else {
            int at = column + lane % 4 * 2 * RUN + j;
            write_pair(p, w, packed, at, o[j][2 * half] * by, o[j + 1][2 * half] * by);
            write_pair(p, w, packed, at + RUN, o[j][2 * half + 1] * by,
                       o[j + 1][2 * half + 1] * by);
        }
    }
}

DEVICE void write_output(const params &p, const work &w, const output_part &out, int warp,
                         int lane)
{
    float value_scale = KV_FORMAT == FORMAT_FP8 && p.kv_scale ? *p.kv_scale : 1;
#pragma unroll
    for (int tile = 0; tile < ROW_TILES; tile++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int within = tile * 16 + half * 8 + lane / 4;
            float total = state_of().total[within];
            float by = total == 0 ? 0 : value_scale / (total * WEIGHT_UNIT);
#pragma unroll
            for (int block = 0; block < BLOCKS; block++) {
                if (within < w.num_packed && has_block(warp, block)) {
                    write_row(p, w, w.first + within, column_of_block(warp, block), lane,
                              out.o[block][tile], half, by);
                }
            }
        }
    }
}

DEVICE float score_scale(const params &p)
{
    float scale = p.softmax_scale;
    scale *= p.query_scale ? *p.query_scale : 1;
    scale *= KV_FORMAT == FORMAT_FP8 && p.kv_scale ? *p.kv_scale : 1;
    return scale * LOG2_E;
}

/* Copies run NUM_STAGES - 1 tiles ahead; a tile's stage is free once the block has passed the
 * barrier of the next one. */
DEVICE void attend_work(const params &p, const work &w)
{
    int warp = (int)threadIdx.x / WARP;
    int lane = (int)threadIdx.x % WARP;
    int page = page_of_lane(p, w.keys, 0, warp, lane);
#pragma unroll
    for (int tile = 0; tile < NUM_STAGES - 1; tile++) {
        if (tile < w.keys.num) {
            copy_tile(p, w.keys, tile, page, warp, lane);
        }
        copy_commit();
        page = page_of_lane(p, w.keys, tile + 1, warp, lane);
    }
    query_part query;
    load_query(p, w.first, w.num_packed, warp % DIM_GROUPS, lane, query);
    output_part out = {};
    softmax_row row = {minus_infinity(), 0};
    note_seen(p, w);
    float scale = score_scale(p);
    for (int tile = 0; tile < w.keys.num; tile++) {
        int ahead = tile + NUM_STAGES - 1;
        copy_wait<NUM_STAGES - 2>();
        __syncthreads();
        if (ahead < w.keys.num) {
            copy_tile(p, w.keys, ahead, page, warp, lane);
            page = page_of_lane(p, w.keys, ahead + 1, warp, lane);
        }
        copy_commit();
        score_tile(query, tile % NUM_STAGES, warp, lane);
        __syncthreads();
        softmax_tile(row, w.keys, tile, scale);
        __syncthreads();
        add_values(out, tile % NUM_STAGES, warp, lane);
    }
    finish_softmax(p, w, row);
    __syncthreads();
    write_output(p, w, out, warp, lane);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_UNIT)
    attend(const __grid_constant__ params p)
{
    let_next_start();
    int first = 0;
    unsigned before = 0; /* items of the requests before `first` */
    scan_requests(p, first);
    for (unsigned item = blockIdx.x;; item += gridDim.x) {
        while (item - before >= state_of().items_before[THREADS]) {
            first += THREADS;
            if (first >= p.num_requests) {
                return;
            }
            before += state_of().items_before[THREADS];
            __syncthreads();
            scan_requests(p, first);
        }
        const work &w = find_work(p, first, item - before);
        if (w.keys.num > 0 || w.request.num_splits == 1) {
            attend_work(p, w);
        }
        __syncthreads();
    }
}
