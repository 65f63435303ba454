/* scores.cu - query times keys. A warp has a group of columns (DIM_GROUPS of them) and a group
 * of the tile's tokens, and adds up its columns only; softmax adds the groups. Its part of
 * the query stays in registers.
 *
 * Codes of e4m3 become f16, exactly; the query becomes f16 too, each row times a power of two
 * of its own that puts its largest value near 2^14: what f16 then cannot hold is below 2^-38
 * of that. bf16 keys stay bf16. The order of columns within a product is free: of fp8 a lane
 * reads 16 neighbours at once. */

constexpr int STEPS =
    (LATENT < GROUP ? LATENT : GROUP) / 16; /* of the latent part, a warp */
constexpr int ROPE_STEPS = (ROPE / 16 + DIM_GROUPS - 1) / DIM_GROUPS;
constexpr int ALL_STEPS = STEPS + ROPE_STEPS;
/* Groups of warps that have as many row tiles each. */
constexpr int ROW_GROUPS = IS_WIDE ? 2 : THREADS / 256;
constexpr int SCORE_TILES = ROW_TILES / ROW_GROUPS;
constexpr int TOKEN_GROUPS = WARPS / DIM_GROUPS / ROW_GROUPS;
constexpr int WARP_TILES = TILE_TOKENS / TOKEN_GROUPS / 8; /* of tokens */
/* At once: as many as the registers hold. */
constexpr int TOKEN_TILES = !IS_WIDE ? WARP_TILES : IS_BF16 ? 1 : 2;
constexpr int ROPE_AT = IS_BF16   ? 2 * LATENT
                        : IS_G128 ? LATENT + LATENT / GROUP * 4
                                  : LATENT;
constexpr bool IS_ROPE_BF16 = KV_FORMAT != FORMAT_FP8;

struct query_part {
    u32 a[SCORE_TILES][ALL_STEPS][4];
    float unscale[SCORE_TILES][2]; /* of rows lane/4 and lane/4 + 8; fp8 */
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
    return IS_BF16 ? 16 * step + 8 * which
                   : step / 4 * READ_AGAIN + step % 4 * 4 + 2 * which;
}

DEVICE bool has_step(int dim_group, int step)
{
    return step < STEPS
               ? LATENT == DIM_GROUPS * GROUP || dim_group * GROUP + step * 16 < LATENT
               : (dim_group + (step - STEPS) * DIM_GROUPS) * 16 < ROPE;
}

/* Where a lane's pair of a row is. */
DEVICE int column_of_pair(int step, int which, int dim_group, int lane_of_4)
{
    if (step < STEPS) {
        return first_latent_column(dim_group, lane_of_4) + latent_pair(step, which);
    }
    return LATENT + (dim_group + (step - STEPS) * DIM_GROUPS) * 16 +
           (IS_ROPE_BF16 ? 2 * lane_of_4 + 8 * which : 4 * lane_of_4 + 2 * which);
}

/* A pair as it is stored; zeros where there is none. row: NULL for none. */
template <int ITEM_BYTES>
DEVICE u32 query_pair(const u8 *row, int step, int which, int dim_group, int lane_of_4)
{
    if (!row || !has_step(dim_group, step)) {
        return 0;
    }
    const u8 *at = row + column_of_pair(step, which, dim_group, lane_of_4) * ITEM_BYTES;
    if constexpr (ITEM_BYTES == 2) {
        return *(const u32 *)at;
    }
    return *(const u16 *)at;
}

template <int ITEM_BYTES> DEVICE float2 floats_of_pair(u32 pair)
{
    if constexpr (ITEM_BYTES == 2) {
        return floats_of_bf16x2(pair);
    }
    return floats_of_f16x2(f16x2_of_e4m3x2(pair));
}

DEVICE bool is_bf16_step(int step)
{
    return IS_BF16 || (step >= STEPS && IS_ROPE_BF16);
}

/* 2^e that brings the largest of a row's values that become f16 near 2^14. half: of the
 * registers that hold the row. */
template <int ITEM_BYTES> DEVICE float scale_of_row(const u32 (&a)[ALL_STEPS][4], int half)
{
    float most = 0;
#pragma unroll
    for (int step = 0; step < ALL_STEPS; step++) {
        if (!is_bf16_step(step)) {
            float2 x = floats_of_pair<ITEM_BYTES>(a[step][half]);
            float2 y = floats_of_pair<ITEM_BYTES>(a[step][half + 2]);
            most = fmaxf(most, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fabsf(y.x)));
            most = fmaxf(most, fabsf(y.y));
        }
    }
    most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 1));
    most = fmaxf(most, __shfl_xor_sync(ALL_LANES, most, 2));
    int exponent = (int)(__float_as_uint(most) >> 23) - 127; /* -127 of 0 */
    return __uint_as_float((u32)(min(max(14 - exponent, -120), 120) + 127) << 23);
}

/* Rows [skip, skip + 16 SCORE_TILES) of the packed tile, whose row 0 is `first` of the batch
 * and which has `num`. */
template <int ITEM_BYTES>
DEVICE void load_query_of(const u8 *query, s64 first, int num, int skip, int dim_group,
                          int lane, query_part &q)
{
#pragma unroll
    for (int row = 0; row < 2 * SCORE_TILES; row++) {
        int within = skip + row * 8 + lane / 4;
        const u8 *from = within < num
                             ? query + (first + within) * (LATENT + ROPE) * ITEM_BYTES
                             : nullptr;
#pragma unroll
        for (int step = 0; step < ALL_STEPS; step++) {
#pragma unroll
            for (int which = 0; which < 2; which++) {
                q.a[row / 2][step][row % 2 + 2 * which] =
                    query_pair<ITEM_BYTES>(from, step, which, dim_group, lane % 4);
            }
        }
    }
#pragma unroll
    for (int row = 0; row < 2 * SCORE_TILES; row++) {
        u32(&a)[ALL_STEPS][4] = q.a[row / 2];
        float scale = IS_BF16 ? 1 : scale_of_row<ITEM_BYTES>(a, row % 2);
        q.unscale[row / 2][row % 2] = 1 / scale;
#pragma unroll
        for (int step = 0; step < ALL_STEPS; step++) {
#pragma unroll
            for (int which = row % 2; which < 4; which += 2) {
                float2 v = floats_of_pair<ITEM_BYTES>(a[step][which]);
                if (!is_bf16_step(step)) {
                    a[step][which] = f16x2(v.x * scale, v.y * scale);
                } else if (ITEM_BYTES == 1) {
                    a[step][which] = bf16x2(v.x, v.y);
                }
            }
        }
    }
}

DEVICE void load_query(const params &p, s64 first, int num, int warp, int lane,
                       query_part &q)
{
    int dim_group = warp % DIM_GROUPS;
    int skip = warp / (WARPS / ROW_GROUPS) * SCORE_TILES * 16;
    if (p.query_dtype == MLAI_CUDA_QUERY_BF16) {
        load_query_of<2>((const u8 *)p.query, first, num, skip, dim_group, lane, q);
    } else {
        load_query_of<1>((const u8 *)p.query, first, num, skip, dim_group, lane, q);
    }
}

/* Scores of TOKEN_TILES of a warp's tiles, eight tokens each. Nothing is written before all of
 * them are done, so that the products of different tokens can overlap. */
typedef float score_part[TOKEN_TILES][SCORE_TILES][4];

template <bool IS_BF16_STEP>
DEVICE void multiply_step(const query_part &q, int step, const u32 (&b)[TOKEN_TILES][2],
                          score_part &s)
{
#pragma unroll
    for (int t = 0; t < TOKEN_TILES; t++) {
#pragma unroll
        for (int tile = 0; tile < SCORE_TILES; tile++) {
            multiply<IS_BF16_STEP>(s[t][tile], q.a[tile][step], b[t][0], b[t][1]);
        }
    }
}

/* Columns of the latent part; `rows`: where the first token's row begins. */
DEVICE void multiply_latent_bf16(const query_part &q, u32 rows, int dim_group, int lane,
                                 score_part &s)
{
    u32 at = rows + lane % 8 * ROW_STRIDE + 2 * (dim_group * GROUP + lane / 8 * 8);
#pragma unroll
    for (int step = 0; step < STEPS; step += 2) {
        if (has_step(dim_group, step)) {
#pragma unroll
            for (int t = 0; t < TOKEN_TILES; t++) {
                u32 b[4];
                load_matrix_x4(b, at + t * 8 * ROW_STRIDE + step * 32);
#pragma unroll
                for (int tile = 0; tile < SCORE_TILES; tile++) {
                    multiply<true>(s[t][tile], q.a[tile][step], b[0], b[1]);
                    multiply<true>(s[t][tile], q.a[tile][step + 1], b[2], b[3]);
                }
            }
        }
    }
}

DEVICE void multiply_latent_codes(const query_part &q, u32 rows, int dim_group, int lane,
                                  score_part &s)
{
    u32 at = rows + lane / 4 * ROW_STRIDE + dim_group * GROUP + lane % 4 * READ_OF_LANE;
#pragma unroll
    for (int read = 0; read < STEPS / 4; read++) {
        if (has_step(dim_group, 4 * read)) {
            u32 codes[TOKEN_TILES][4];
#pragma unroll
            for (int t = 0; t < TOKEN_TILES; t++) {
                uint4 v = load_shared_16(at + t * 8 * ROW_STRIDE + read * READ_AGAIN);
                codes[t][0] = v.x;
                codes[t][1] = v.y;
                codes[t][2] = v.z;
                codes[t][3] = v.w;
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                u32 b[TOKEN_TILES][2];
#pragma unroll
                for (int t = 0; t < TOKEN_TILES; t++) {
                    b[t][0] = f16x2_of_e4m3x2(codes[t][i]);
                    b[t][1] = f16x2_of_e4m3x2(codes[t][i] >> 16);
                }
                multiply_step<false>(q, 4 * read + i, b, s);
            }
        }
    }
}

DEVICE void multiply_rope(const query_part &q, u32 rows, int dim_group, int lane,
                          score_part &s)
{
    u32 at = rows + lane / 4 * ROW_STRIDE + ROPE_AT + lane % 4 * 4;
#pragma unroll
    for (int step = 0; step < ROPE_STEPS; step++) {
        if (has_step(dim_group, STEPS + step)) {
            int column = (dim_group + step * DIM_GROUPS) * 16;
            u32 b[TOKEN_TILES][2];
#pragma unroll
            for (int t = 0; t < TOKEN_TILES; t++) {
                u32 row = at + t * 8 * ROW_STRIDE;
                if constexpr (IS_ROPE_BF16) {
                    b[t][0] = load_shared_4(row + 2 * column);
                    b[t][1] = load_shared_4(row + 2 * column + 16);
                } else {
                    u32 codes = load_shared_4(row + column);
                    b[t][0] = f16x2_of_e4m3x2(codes);
                    b[t][1] = f16x2_of_e4m3x2(codes >> 16);
                }
            }
            multiply_step<IS_ROPE_BF16>(q, STEPS + step, b, s);
        }
    }
}

/* Back to the query's own units; for fp8_g128 times the scales of the tokens' groups. */
DEVICE void unscale(const query_part &q, u32 rows, int dim_group, int lane, score_part &s)
{
    u32 at = rows + lane % 4 * 2 * ROW_STRIDE + LATENT + dim_group * 4;
    bool is_scaled = IS_G128 && dim_group * GROUP < LATENT;
#pragma unroll
    for (int t = 0; t < TOKEN_TILES; t++) {
        float scale[2] = {1, 1}; /* of tokens 2 (lane % 4) and the next */
        if (is_scaled) {
            scale[0] = __uint_as_float(load_shared_4(at + t * 8 * ROW_STRIDE));
            scale[1] = __uint_as_float(load_shared_4(at + (t * 8 + 1) * ROW_STRIDE));
        }
#pragma unroll
        for (int tile = 0; tile < SCORE_TILES; tile++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s[t][tile][i] *= q.unscale[tile][i / 2] * scale[i % 2];
            }
        }
    }
}

DEVICE void write_scores(const score_part &s, int dim_group, int row, int token)
{
    float *to = scores_of(dim_group);
#pragma unroll
    for (int t = 0; t < TOKEN_TILES; t++) {
#pragma unroll
        for (int i = 0; i < 2 * SCORE_TILES; i++) {
            const float *pair = s[t][i / 2] + i % 2 * 2;
            *(float2 *)(to + score_at(row + i * 8, token + t * 8)) =
                make_float2(pair[0], pair[1]);
        }
    }
}

/* This warp's part of the tile's scores, to shared memory. */
DEVICE void score_tile(const query_part &q, int stage, int warp, int lane)
{
    int dim_group = warp % DIM_GROUPS;
    int row = warp / (WARPS / ROW_GROUPS) * SCORE_TILES * 16 + lane / 4;
    int first = warp / DIM_GROUPS % TOKEN_GROUPS * WARP_TILES * 8;
#pragma unroll 1
    for (int part = 0; part < WARP_TILES; part += TOKEN_TILES) {
        int token = first + part * 8;
        u32 rows = shared_address(stage_of(stage)) + token * ROW_STRIDE;
        score_part s = {};
        if constexpr (IS_BF16) {
            multiply_latent_bf16(q, rows, dim_group, lane, s);
            multiply_rope(q, rows, dim_group, lane, s);
        } else if constexpr (IS_G128) {
            multiply_latent_codes(q, rows, dim_group, lane, s);
            unscale(q, rows, dim_group, lane, s);
            multiply_rope(q, rows, dim_group, lane, s);
        } else {
            multiply_latent_codes(q, rows, dim_group, lane, s);
            multiply_rope(q, rows, dim_group, lane, s);
            unscale(q, rows, dim_group, lane, s);
        }
        write_scores(s, dim_group, row, token + lane % 4 * 2);
    }
}
