/* values.cu - weights times values. A warp has blocks of columns of the output for all rows of
 * the tile, in registers; the values are the first LATENT columns of the same KV rows.
 *
 * The weights are at most 1: f16 for fp8, whose codes are exact in f16; bf16 for bf16. For
 * fp8_g128 a weight is multiplied by the scale of the token's group first, which asks for the
 * range of bf16: the codes are exact in that, too. */

constexpr int RUN =
    LATENT % (64 * WARPS) == 0 ? 8 : 4; /* neighbouring fp8 columns that a lane reads */
constexpr int BLOCK = 8 * RUN;          /* columns */
constexpr int BLOCKS = (LATENT / BLOCK + WARPS - 1) / WARPS; /* of a warp */
constexpr bool ARE_ALL_FULL = LATENT % (BLOCK * WARPS) == 0;

struct output_part {
    float o[BLOCKS][ROW_TILES][RUN][4];
};

DEVICE bool has_block(int warp, int block)
{
    return ARE_ALL_FULL || (warp + block * WARPS) * BLOCK < LATENT;
}

DEVICE int column_of_block(int warp, int block)
{
    return (warp + block * WARPS) * BLOCK;
}

/* The weights of 16 rows and 16 tokens as an operand; at: their rows and the first token. */
DEVICE void load_weights(u32 (&a)[4], int row, int token, int lane)
{
    u32 at = shared_address(weights_of()) +
             2 * ((row + lane % 16) * WEIGHT_STRIDE + token + lane / 16 * 8);
    load_matrix_x4(a, at);
}

/* The same for fp8_g128, times the scales of a column group. scales: the tokens' in shared
 * memory, ROW_STRIDE apart. */
DEVICE void load_scaled_weights(u32 (&a)[4], int row, int token, u32 scales, int lane)
{
    const float *from = (const float *)weights_of() + (row + lane / 4) * WEIGHT_STRIDE +
                        token + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 at = scales + (lane % 4 * 2 + 8 * half) * ROW_STRIDE;
        float s0 = __uint_as_float(load_shared_4(at));
        float s1 = __uint_as_float(load_shared_4(at + ROW_STRIDE));
        float2 top = *(const float2 *)(from + 8 * half);
        float2 low = *(const float2 *)(from + 8 * half + 8 * WEIGHT_STRIDE);
        a[2 * half] = bf16x2(top.x * s0, top.y * s1);
        a[2 * half + 1] = bf16x2(low.x * s0, low.y * s1);
    }
}

/* RUN codes at a time. */
DEVICE void load_codes(u32 (&codes)[RUN / 4], u32 at)
{
    if constexpr (RUN == 8) {
        uint2 v = load_shared_8(at);
        codes[0] = v.x;
        codes[1] = v.y;
    } else {
        codes[0] = load_shared_4(at);
    }
}

DEVICE u32 value_pair(u32 codes)
{
    u32 v = f16x2_of_e4m3x2(codes);
    return IS_G128 ? bf16x2_of_f16x2(v) : v;
}

/* 16 tokens of a block of columns. Lane group g = lane/4 has columns g RUN, ...: column j of
 * it is column g of product j. */
DEVICE void multiply_codes(u32 rows, const u32 (&a)[ROW_TILES][4], int lane,
                           float (&o)[ROW_TILES][RUN][4])
{
    u32 at = rows + lane % 4 * 2 * ROW_STRIDE + lane / 4 * RUN;
    u32 codes[4][RUN / 4];
    load_codes(codes[0], at);
    load_codes(codes[1], at + ROW_STRIDE);
    load_codes(codes[2], at + 8 * ROW_STRIDE);
    load_codes(codes[3], at + 9 * ROW_STRIDE);
#pragma unroll
    for (int j = 0; j < RUN; j += 2) {
        u32 selector = j % 4 == 0 ? 0x5140 : 0x7362;
        u32 first = __byte_perm(codes[0][j / 4], codes[1][j / 4], selector);
        u32 second = __byte_perm(codes[2][j / 4], codes[3][j / 4], selector);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            u32 b0 = value_pair(first >> 16 * i);
            u32 b1 = value_pair(second >> 16 * i);
#pragma unroll
            for (int tile = 0; tile < ROW_TILES; tile++) {
                multiply<IS_G128>(o[tile][j + i], a[tile], b0, b1);
            }
        }
    }
}

DEVICE void multiply_bf16(u32 rows, const u32 (&a)[ROW_TILES][4], int lane,
                          float (&o)[ROW_TILES][RUN][4])
{
    u32 at = rows + lane % 16 * ROW_STRIDE + lane / 16 * 16;
#pragma unroll
    for (int j = 0; j < RUN; j += 2) {
        u32 b[4];
        load_matrix_x4_transposed(b, at + j * 16);
#pragma unroll
        for (int tile = 0; tile < ROW_TILES; tile++) {
            multiply<true>(o[tile][j], a[tile], b[0], b[1]);
            multiply<true>(o[tile][j + 1], a[tile], b[2], b[3]);
        }
    }
}

DEVICE void rescale(output_part &out, int lane)
{
    const float *by = state_of().rescale;
    float factor[ROW_TILES][2];
    bool is_needed = false;
#pragma unroll
    for (int tile = 0; tile < ROW_TILES; tile++) {
        factor[tile][0] = by[tile * 16 + lane / 4];
        factor[tile][1] = by[tile * 16 + lane / 4 + 8];
        is_needed |= factor[tile][0] != 1 || factor[tile][1] != 1;
    }
    if (!__any_sync(ALL_LANES, is_needed)) {
        return;
    }
#pragma unroll
    for (int block = 0; block < BLOCKS; block++) {
#pragma unroll
        for (int tile = 0; tile < ROW_TILES; tile++) {
#pragma unroll
            for (int j = 0; j < RUN; j++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    out.o[block][tile][j][i] *= factor[tile][i / 2];
                }
            }
        }
    }
}

DEVICE void add_block(float (&o)[ROW_TILES][RUN][4], u32 (&a)[ROW_TILES][4], u32 rows,
                      int token, int column, int lane)
{
    if constexpr (IS_BF16) {
        multiply_bf16(rows + 2 * column, a, lane, o);
        return;
    }
    if constexpr (IS_G128) {
        u32 scales = rows + LATENT + column / GROUP * 4;
#pragma unroll
        for (int tile = 0; tile < ROW_TILES; tile++) {
            load_scaled_weights(a[tile], tile * 16, token, scales, lane);
        }
    }
    multiply_codes(rows + column, a, lane, o);
}

/* Where the registers do not hold what one turn of the loop asks for early of the next. */
#if __CUDA_ARCH__ == 900
constexpr bool IS_TIGHT = IS_WIDE;
#else
constexpr bool IS_TIGHT = IS_WIDE || (IS_G128 && ROW_TILES > 1);
#endif

DEVICE void add_values(output_part &out, int stage, int warp, int lane)
{
    u32 rows = shared_address(stage_of(stage));
    rescale(out, lane);
#pragma unroll(IS_TIGHT ? 1 : TILE_TOKENS / 16)
    for (int token = 0; token < TILE_TOKENS; token += 16) {
        u32 a[ROW_TILES][4];
        if constexpr (!IS_G128) {
#pragma unroll
            for (int tile = 0; tile < ROW_TILES; tile++) {
                load_weights(a[tile], tile * 16, token, lane);
            }
        }
#pragma unroll
        for (int block = 0; block < BLOCKS; block++) {
            if (has_block(warp, block)) {
                add_block(out.o[block], a, rows + token * ROW_STRIDE, token,
                          column_of_block(warp, block), lane);
            }
        }
    }
}
