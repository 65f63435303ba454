/* append.cu - new rows into pages, rounded as mla_append says: a warp a row. The conversions
 * are those of base/convert, written out so that every architecture gives the same bytes. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef long long s64;

#define DEVICE __device__ __forceinline__

constexpr int WARP = 32;
constexpr int THREADS = 256;
constexpr int FORMAT_BF16 = 1; /* mla_kv_format's values */
constexpr int FORMAT_FP8 = 2;
constexpr int GROUP = 128;
constexpr int WIDTH = LATENT + ROPE;

typedef struct mlai_cuda_append_params params;

DEVICE u16 bf16_of(float value)
{
    u32 bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (u16)(bits >> 16 | 0x40u);
    }
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

DEVICE u8 e4m3_of(float value)
{
    u32 bits = __float_as_uint(value);
    u32 sign = bits >> 24 & 0x80u;
    u32 magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (u8)(sign | 0x7fu);
    }
    if (magnitude >= __float_as_uint(448.0f)) {
        return (u8)(sign | 0x7eu);
    }
    if (magnitude < __float_as_uint(0.015625f)) {
        float shifted = __fadd_rn(__uint_as_float(magnitude), 16384.0f);
        return (u8)(sign | (__float_as_uint(shifted) & 0xfu));
    }
    u32 rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1u);
    return (u8)(sign | ((rounded >> 20) - (120u << 3)));
}

DEVICE float value_at(const params &p, s64 row, int column)
{
    s64 at = row * WIDTH + column;
    return p.rows_are_f32 ? ((const float *)p.rows)[at]
                          : __uint_as_float((u32)((const u16 *)p.rows)[at] << 16);
}

/* NULL where the slot names no row of the pool. */
DEVICE u8 *find_slot(const params &p, s64 slot)
{
    s64 page = slot < 0 ? -1 : slot / p.page_tokens;
    if (page < 0 || page >= p.num_pages) {
        return nullptr;
    }
    return p.pool + page * p.page_stride_bytes + slot % p.page_tokens * ROW_BYTES;
}

/* A NaN keeps its sign, which the division here would not keep. */
DEVICE float divided(float value, float by)
{
    return value != value ? value : __fdiv_rn(value, by);
}

DEVICE void write_group(const params &p, s64 row, int group, int lane, u8 *to)
{
    float value[GROUP / WARP];
    float largest = 0;
    for (int i = 0; i < GROUP / WARP; i++) {
        value[i] = value_at(p, row, group * GROUP + i * WARP + lane);
        float magnitude = fabsf(value[i]);
        largest =
            magnitude < __uint_as_float(0x7f800000u) ? fmaxf(largest, magnitude) : largest;
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    }
    float scale = __fdiv_rn(largest, 448.0f);
    scale = scale > 0 ? scale : 1.0f;
    for (int i = 0; i < GROUP / WARP; i++) {
        to[group * GROUP + i * WARP + lane] = e4m3_of(divided(value[i], scale));
    }
    if (lane == 0) {
        *(float *)(to + LATENT + group * 4) = scale;
    }
}

DEVICE void write_row(const params &p, s64 row, int lane, u8 *to)
{
    if (KV_FORMAT == FORMAT_BF16) {
        for (int i = lane; i < WIDTH; i += WARP) {
            ((u16 *)to)[i] = bf16_of(value_at(p, row, i));
        }
    } else if (KV_FORMAT == FORMAT_FP8) {
        float scale = p.kv_scale ? *p.kv_scale : 1.0f;
        for (int i = lane; i < WIDTH; i += WARP) {
            to[i] = e4m3_of(divided(value_at(p, row, i), scale));
        }
    } else {
        for (int group = 0; group < LATENT / GROUP; group++) {
            write_group(p, row, group, lane, to);
        }
        u16 *rope = (u16 *)(to + LATENT + LATENT / GROUP * 4);
        for (int i = lane; i < ROPE; i += WARP) {
            rope[i] = bf16_of(value_at(p, row, LATENT + i));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    append(const __grid_constant__ params p)
{
    constexpr int ROWS = THREADS / WARP;
    int lane = (int)threadIdx.x % WARP;
    s64 row = (s64)blockIdx.x * ROWS + threadIdx.x / WARP;
    for (; row < p.num_rows; row += (s64)gridDim.x * ROWS) {
        u8 *to = find_slot(p, p.slots[row]);
        if (to) {
            write_row(p, row, lane, to);
        }
    }
}
