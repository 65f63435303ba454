/* scores.cu - query times keys. A warp has a group of columns (DIM_GROUPS of them) and a group
 * of the tile's tokens, and adds up its columns only; softmax adds the groups. Its part of
 * the query stays in registers.
 *
 * Codes of e4m3 become f16, exactly; the query becomes f16 too, each row times a power of two
 * of its own that puts its largest value near 2^14: what f16 then cannot hold is below 2^-38
 * of that. bf16 keys stay bf16. The order of columns within a product is free: of fp8 a lane
 * reads 16 neighbours at once. */

constexpr int STEPS = (LATENT < GROUP ? LATENT : GROUP) / 16; /* of the latent part, a warp */
constexpr int ROPE_STEPS = (ROPE / 16 + DIM_GROUPS - 1) / DIM_GROUPS;
constexpr int ALL_STEPS = STEPS + ROPE_STEPS;
constexpr int TOKEN_GROUPS = WARPS / DIM_GROUPS;
constexpr int TOKEN_TILES = TILE_TOKENS / TOKEN_GROUPS / 8;
constexpr int ROPE_AT = IS_BF16 ? 2 * LATENT : IS_G128 ? LATENT + LATENT / GROUP * 4 : LATENT;
constexpr bool IS_ROPE_BF16 = KV_FORMAT != FORMAT_FP8;

struct query_part {
    u32 a[ROW_TILES][ALL_STEPS][4];
    float unscale[ROW_TILES][2]; /* of rows lane/4 and lane/4 + 8; fp8 */
};

/* First of the 16 columns that a lane (of four) reads at once, from those of its warp: the
 * lane's part, and the read's. */
constexpr int READ_OF_LANE = LATENT % GROUP == 0 ? 32 : 16;
constexpr int READ_AGAIN = LATENT % GROUP == 0 ? 16 : 64;

/* The columns that a lane has of a row of the query: pairs at LATENT_PAIR(step, which) from the
 * first of its latent part, 0: the first eight columns of a step, 1: the others. */
DEVICE int first_latent_column(int dim_group, int lane_of_4)
{
    return dim_group * GROUP + lane_of_4 * (IS_BF16 ? 2 : READ_OF_LANE);
}

DEVICE constexpr int latent_pair(int step, int which)
{
    return IS_BF16 ? 16 * step + 8 * which : step / 4 * READ_AGAIN + step % 4 * 4 + 2 * which;
}

DEVICE bool has_step(int dim_group, int step)
{
    return step < STEPS ? LATENT % GROUP == 0 || dim_group * GROUP + step * 16 < LATENT
                        : (dim_group + (step - STEPS) * DIM_GROUPS) * 16 < ROPE;
}

template <int ITEM_BYTES> DEVICE float2 query_pair(const u8 *at)
{
    if constexpr (ITEM_BYTES == 2) {
        return floats_of_bf16x2(*(const u32 *)at);
    }
    return floats_of_f16x2(f16x2_of_e4m3x2(*(const u16 *)at));
}

/* A lane's pair of a row, 0 where there is none. row: NULL for none. */
template <int ITEM_BYTES>
DEVICE float2 query_step(const u8 *row, int step, int which, int dim_group, int lane_of_4)
{
    if (!row || !has_step(dim_group, step)) {
        return make_float2(0, 0);
    }
    int column = first_latent_column(dim_group, lane_of_4) + latent_pair(step, which);
    if (step >= STEPS) {
        column = LATENT + (dim_group + (step - STEPS) * DIM_GROUPS) * 16 +
                 (IS_ROPE_BF16 ? 2 * lane_of_4 + 8 * which : 4 * lane_of_4 + 2 * which);
    }
    return query_pair<ITEM_BYTES>(row + column * ITEM_BYTES);
}

/* 2^e that brings the row's largest value (of this warp's columns) near 2^14. */
template <int ITEM_BYTES> DEVICE float scale_of_row(const u8 *row, int dim_group, int lane_of_4)
{
    float most = 0;
#pragma unroll
    for (int step = 0; step < (IS_ROPE_BF16 ? STEPS : ALL_STEPS); step++) {
#pragma unroll
        for (int which = 0; which < 2; which++) {
            float2 q = query_step<ITEM_BYTES>(row, step, which, dim_group, lane_of_4);
            most = fmaxf(most, fmaxf(fabsf(q.x), fabsf(q.y)));
        }
    }
    most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
    most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
    int exponent = (int)(__float_as_uint(most) >> 23) - 127; /* -127 of 0 */
    return __uint_as_float((u32)(min(max(14 - exponent, -120), 120) + 127) << 23);
}

/* Rows of the packed tile: `first` is its first (query row, head), `num` how many there are. */
template <int ITEM_BYTES>
DEVICE void load_query_of(const u8 *query, s64 first, int num, int dim_group, int lane,
                          query_part &q)
{
#pragma unroll
    for (int half = 0; half < 2 * ROW_TILES; half++) {
        int within = half * 8 + lane / 4;
        const u8 *row =
            within < num ? query + (first + within) * (LATENT + ROPE) * ITEM_BYTES : nullptr;
        float scale = IS_BF16 ? 1 : scale_of_row<ITEM_BYTES>(row, dim_group, lane % 4);
        q.unscale[half / 2][half % 2] = 1 / scale;
#pragma unroll
        for (int step = 0; step < ALL_STEPS; step++) {
#pragma unroll
            for (int which = 0; which < 2; which++) {
                float2 v = query_step<ITEM_BYTES>(row, step, which, dim_group, lane % 4);
                bool is_bf16 = IS_BF16 || (step >= STEPS && IS_ROPE_BF16);
                q.a[half / 2][step][half % 2 + 2 * which] =
                    is_bf16 ? bf16x2(v.x, v.y) : f16x2(v.x * scale, v.y * scale);
            }
        }
    }
}

DEVICE void load_query(const params &p, s64 first, int num, int dim_group, int lane,
                       query_part &q)
{
    if (p.query_dtype == MLAI_CUDA_QUERY_BF16) {
        load_query_of<2>((const u8 *)p.query, first, num, dim_group, lane, q);
    } else {
        load_query_of<1>((const u8 *)p.query, first, num, dim_group, lane, q);
    }
}

/* Columns of the latent part, eight tokens whose rows begin at `rows`. */
DEVICE void multiply_latent(const query_part &q, u32 rows, int dim_group, int lane,
                            float (&s)[ROW_TILES][4])
{
    if constexpr (IS_BF16) {
#pragma unroll
        for (int step = 0; step < STEPS; step += 2) {
            int column = dim_group * GROUP + step * 16;
            if (LATENT % GROUP == 0 || column < LATENT) {
                u32 b[4];
                load_matrix_x4(b, rows + lane % 8 * ROW_STRIDE + 2 * (column + lane / 8 * 8));
#pragma unroll
                for (int tile = 0; tile < ROW_TILES; tile++) {
                    multiply<true>(s[tile], q.a[tile][step], b[0], b[1]);
                    multiply<true>(s[tile], q.a[tile][step + 1], b[2], b[3]);
                }
            }
        }
    } else {
        u32 row = rows + lane / 4 * ROW_STRIDE + dim_group * GROUP;
#pragma unroll
        for (int read = 0; read < STEPS / 4; read++) {
            int column = lane % 4 * READ_OF_LANE + read * READ_AGAIN;
            if (LATENT % GROUP == 0 || dim_group * GROUP + 64 * read < LATENT) {
                uint4 codes = load_shared_16(row + column);
                u32 word[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    u32 b0 = f16x2_of_e4m3x2(word[i]);
                    u32 b1 = f16x2_of_e4m3x2(word[i] >> 16);
#pragma unroll
                    for (int tile = 0; tile < ROW_TILES; tile++) {
                        multiply<false>(s[tile], q.a[tile][4 * read + i], b0, b1);
                    }
                }
            }
        }
    }
}

DEVICE void multiply_rope(const query_part &q, u32 rows, int dim_group, int lane,
                          float (&s)[ROW_TILES][4])
{
#pragma unroll
    for (int step = 0; step < ROPE_STEPS; step++) {
        int column = (dim_group + step * DIM_GROUPS) * 16;
        if (column < ROPE) {
            u32 row = rows + lane / 4 * ROW_STRIDE + ROPE_AT;
            u32 b0, b1;
            if constexpr (IS_ROPE_BF16) {
                b0 = load_shared_4(row + 2 * column + lane % 4 * 4);
                b1 = load_shared_4(row + 2 * column + lane % 4 * 4 + 16);
            } else {
                u32 codes = load_shared_4(row + column + lane % 4 * 4);
                b0 = f16x2_of_e4m3x2(codes);
                b1 = f16x2_of_e4m3x2(codes >> 16);
            }
#pragma unroll
            for (int tile = 0; tile < ROW_TILES; tile++) {
                multiply<IS_ROPE_BF16>(s[tile], q.a[tile][STEPS + step], b0, b1);
            }
        }
    }
}

/* s: of the latent part so far. Afterwards of all columns of the warp, in the query's units. */
DEVICE void finish_scores(const query_part &q, u32 rows, int dim_group, int lane,
                          float (&s)[ROW_TILES][4])
{
    float scale[2] = {1, 1}; /* of tokens 2 (lane % 4) and the next */
    if (!IS_G128) {
        multiply_rope(q, rows, dim_group, lane, s);
    } else if (dim_group * GROUP < LATENT) {
        u32 at = rows + lane % 4 * 2 * ROW_STRIDE + LATENT + dim_group * 4;
        scale[0] = __uint_as_float(load_shared_4(at));
        scale[1] = __uint_as_float(load_shared_4(at + ROW_STRIDE));
    }
    if (!IS_BF16) {
#pragma unroll
        for (int tile = 0; tile < ROW_TILES; tile++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s[tile][i] *= q.unscale[tile][i / 2] * scale[i % 2];
            }
        }
    }
    if (IS_G128) {
        multiply_rope(q, rows, dim_group, lane, s);
    }
}

/* This warp's part of the tile's scores, to shared memory. */
DEVICE void score_tile(const query_part &q, int stage, int warp, int lane)
{
    int dim_group = warp % DIM_GROUPS;
    int first_token = warp / DIM_GROUPS * TOKEN_TILES * 8;
    u32 rows = shared_address(stage_of(stage)) + first_token * ROW_STRIDE;
    float *to = scores_of(dim_group) + lane / 4 * SCORE_STRIDE + first_token + lane % 4 * 2;
#pragma unroll
    for (int t = 0; t < TOKEN_TILES; t++) {
        float s[ROW_TILES][4] = {};
        multiply_latent(q, rows + t * 8 * ROW_STRIDE, dim_group, lane, s);
        finish_scores(q, rows + t * 8 * ROW_STRIDE, dim_group, lane, s);
#pragma unroll
        for (int tile = 0; tile < ROW_TILES; tile++) {
            float *row = to + tile * 16 * SCORE_STRIDE + t * 8;
            *(float2 *)row = make_float2(s[tile][0], s[tile][1]);
            *(float2 *)(row + 8 * SCORE_STRIDE) = make_float2(s[tile][2], s[tile][3]);
        }
    }
}
