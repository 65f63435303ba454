/* bench_shapes.c - the table of shapes: see bench_shapes.h. */
#include "cli/bench_shapes.h"

enum { LATENT = 512, ROPE = 64 };
#define SOFTMAX_SCALE 0.0721687824F /* 1 / sqrt(128 + 64) */

const bench_shape bench_shapes[BENCH_NUM_SHAPES] = {
    {"h128 q1 b128 L4096", 128, 1, 128, 4096, 0},
    {"h128 q2 b128 L4096", 128, 2, 128, 4096, 0},
    {"h128 q1 b128 L8192", 128, 1, 128, 8192, 0},
    {"h128 q2 b128 L8192", 128, 2, 128, 8192, 0},
    {"h128 q1 b128 L16384", 128, 1, 128, 16384, 0},
    {"h128 q2 b128 L16384", 128, 2, 128, 16384, 0},
    {"h16 q1 b1 L4096", 16, 1, 1, 4096, 0},
    {"h16 q1 b1 L32768", 16, 1, 1, 32768, 0},
    {"h16 q1 b1 L131072", 16, 1, 1, 131072, 0},
    {"h16 q1 b8 L8192", 16, 1, 8, 8192, 0},
    {"h16 q1 b8 L131072", 16, 1, 8, 131072, 0},
    {"h16 q1 b32 L8192", 16, 1, 32, 8192, 0},
    {"h16 q1 b32 L32768", 16, 1, 32, 32768, 0},
    {"h16 q1 b128 L8192", 16, 1, 128, 8192, 0},
    {"h16 q1 b128 L32768", 16, 1, 128, 32768, 0},
    {"h128 q1 b1 L4096", 128, 1, 1, 4096, 0},
    {"h128 q1 b1 L32768", 128, 1, 1, 32768, 0},
    {"h128 q1 b1 L131072", 128, 1, 1, 131072, 0},
    {"h128 q1 b8 L8192", 128, 1, 8, 8192, 0},
    {"h128 q1 b8 L131072", 128, 1, 8, 131072, 0},
    {"h128 q1 b32 L8192", 128, 1, 32, 8192, 0},
    {"h128 q1 b32 L32768", 128, 1, 32, 32768, 0},
    {"h16 q2 b32 L8192", 16, 2, 32, 8192, 0},
    {"h16 q8 b32 L8192", 16, 8, 32, 8192, 0},
    {"h128 q8 b1 L8192", 128, 8, 1, 8192, 0},
    {"h128 q8 b8 L32768", 128, 8, 8, 32768, 0},
    {"h64 q1 b1 L32768", 64, 1, 1, 32768, 0},
    {"h64 q1 b32 L8192", 64, 1, 32, 8192, 0},
    {"h64 q1 b128 L8192", 64, 1, 128, 8192, 0},
    {"h64 q2 b32 L32768", 64, 2, 32, 32768, 0},
    {"h32 q1 b1 L32768", 32, 1, 1, 32768, 0},
    {"h32 q1 b32 L8192", 32, 1, 32, 8192, 0},
    {"h32 q1 b128 L8192", 32, 1, 128, 8192, 0},
    {"h32 q2 b128 L8192", 32, 2, 128, 8192, 0},
    {"h16 q1 b64 Lmix", 16, 1, 64, 0, 0},
    {"h128 q1 b64 Lmix", 128, 1, 64, 0, 0},
    {"h16 q1 b32 L8192w", 16, 1, 32, 8192, 262144},
    {"h16 q1 b8 L4096", 16, 1, 8, 4096, 0},
    {"h16 q1 b128 L131072", 16, 1, 128, 131072, 0},
    {"h128 q1 b128 L32768", 128, 1, 128, 32768, 0},
    {"h128 q8 b32 L8192", 128, 8, 32, 8192, 0},
    {"h16 q1 b32 L131072", 16, 1, 32, 131072, 0},
};

/* 64 draws, exp of a uniform number between log 512 and log 65536. */
static const int32_t mixed[] = {
    55691, 4344, 530,   42548, 48809, 8632,  13316, 769,   21106, 1615,  594,
    23516, 2745, 10535, 10160, 1052,  1244,  891,   549,   5431,  55273, 700,
    7070,  4909, 9477,  788,   8498,  1893,  7617,  11685, 5283,  2869,  1715,
    47466, 4620, 6705,  562,   6024,  526,   1028,  5077,  3194,  665,   8857,
    1134,  7650, 1030,  48347, 21571, 53177, 1015,  2253,  620,   1961,  25630,
    1210,  1083, 52609, 1083,  29271, 624,   3334,  2792,  2687};

int32_t bench_shape_length(const bench_shape *shape, int32_t request)
{
    return shape->length ? shape->length : mixed[request];
}

static int32_t pages_of(int32_t length)
{
    return (length + BENCH_PAGE_TOKENS - 1) / BENCH_PAGE_TOKENS;
}

int64_t bench_shape_pages(const bench_shape *shape)
{
    int64_t num = 0;
    for (int32_t i = 0; i < shape->requests; i++) {
        num += pages_of(bench_shape_length(shape, i));
    }
    return num;
}

static int32_t longest(const bench_shape *shape)
{
    int32_t most = 0;
    for (int32_t i = 0; i < shape->requests; i++) {
        int32_t length = bench_shape_length(shape, i);
        most = length > most ? length : most;
    }
    return most;
}

mla_caps bench_shape_caps(const bench_shape *shape, mla_kv_format format)
{
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = shape->rows > 1 ? MLA_VERIFY : MLA_DECODE;
    caps.kv_format = format;
    caps.query_dtype = format == MLA_KV_FP8 ? MLA_E4M3 : MLA_BF16;
    caps.output_dtype = MLA_BF16;
    caps.num_heads = shape->heads;
    caps.latent_dim = LATENT;
    caps.rope_dim = ROPE;
    caps.page_tokens = BENCH_PAGE_TOKENS;
    caps.causal = 1;
    caps.softmax_scale = SOFTMAX_SCALE;
    caps.max_requests = shape->requests;
    caps.max_query_rows = shape->requests * shape->rows;
    caps.max_rows_per_request = shape->rows;
    caps.max_context_tokens = longest(shape);
    caps.table_width = pages_of(longest(shape));
    return caps;
}
