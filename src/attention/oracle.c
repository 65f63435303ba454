/* oracle.c - attention as it is written in a textbook, in double. Nothing here is shared
 * with the kernels: it has its own reading of stored numbers, of page tables and of who
 * sees what, so that it cannot share their mistakes. */
#include "attention/oracle.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { CHUNK = 16 /* columns decoded at once; divides D and R */, GROUP = 128 };

typedef struct range {
    int64_t begin, end;
} range;

typedef struct problem {
    const mla_caps *caps;
    const unsigned char *pool, *query;
    double kv_scale, query_scale;
    int64_t page_stride;
    size_t row_bytes;
} problem;

static double of_f32(const unsigned char *bytes)
{
    float value;
    memcpy(&value, bytes, sizeof value);
    return (double)value;
}

/* bf16 is the upper half of an f32. */
static double of_bf16(const unsigned char *bytes)
{
    uint16_t half;
    memcpy(&half, bytes, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* S.EEEE.MMM: (8 + M) * 2^(E-10), M * 2^-9 where E is 0, NaN where all of E and M are 1. */
static double of_e4m3(unsigned char code)
{
    static const double unit[16] = {0x1p-9, 0x1p-9, 0x1p-8, 0x1p-7, 0x1p-6, 0x1p-5,
                                    0x1p-4, 0x1p-3, 0x1p-2, 0x1p-1, 0x1p0,  0x1p1,
                                    0x1p2,  0x1p3,  0x1p4,  0x1p5};
    int exponent = code >> 3 & 15;
    int mantissa = code & 7;
    if (exponent == 15 && mantissa == 7) {
        return (double)NAN;
    }
    double magnitude = (exponent ? 8 + mantissa : mantissa) * unit[exponent];
    return code & 0x80 ? -magnitude : magnitude;
}

static void read_f32(const unsigned char *from, double *to)
{
    for (int32_t i = 0; i < CHUNK; i++) {
        to[i] = of_f32(from + 4 * (ptrdiff_t)i);
    }
}

static void read_bf16(const unsigned char *from, double *to)
{
    for (int32_t i = 0; i < CHUNK; i++) {
        to[i] = of_bf16(from + 2 * (ptrdiff_t)i);
    }
}

static void read_e4m3(const unsigned char *from, double scale, double *to)
{
    for (int32_t i = 0; i < CHUNK; i++) {
        to[i] = of_e4m3(from[i]) * scale;
    }
}

/* D codes, their D/128 scales, then the rope part. */
static void read_grouped(const unsigned char *row, int32_t latent_dim, int32_t first,
                         double *to)
{
    const unsigned char *scales = row + latent_dim;
    const unsigned char *rope = scales + 4 * (ptrdiff_t)(latent_dim / GROUP);
    if (first < latent_dim) {
        read_e4m3(row + first, of_f32(scales + 4 * (ptrdiff_t)(first / GROUP)), to);
    } else {
        read_bf16(rope + 2 * (ptrdiff_t)(first - latent_dim), to);
    }
}

/* Columns [first, first + CHUNK) of a stored key. */
static void read_key(const problem *in, const unsigned char *row, int32_t first, double *to)
{
    switch (in->caps->kv_format) {
    case MLA_KV_F32:
        read_f32(row + 4 * (ptrdiff_t)first, to);
        break;
    case MLA_KV_BF16:
        read_bf16(row + 2 * (ptrdiff_t)first, to);
        break;
    case MLA_KV_FP8:
        read_e4m3(row + first, in->kv_scale, to);
        break;
    case MLA_KV_FP8_G128:
        read_grouped(row, in->caps->latent_dim, first, to);
        break;
    }
}

static void read_query(const problem *in, int64_t index, int32_t first, double *to)
{
    int64_t at = index * (in->caps->latent_dim + in->caps->rope_dim) + first;
    switch (in->caps->query_dtype) {
    case MLA_F32:
        read_f32(in->query + 4 * at, to);
        break;
    case MLA_BF16:
        read_bf16(in->query + 2 * at, to);
        break;
    case MLA_E4M3:
        read_e4m3(in->query + at, in->query_scale, to);
        break;
    }
}

/* NULL where the key's page is not in the pool: the key is masked. */
static const unsigned char *find_key(const problem *in, const int32_t *table, int64_t key)
{
    int64_t page = table[key / in->caps->page_tokens];
    if (page < 0 || page >= in->caps->num_pages) {
        return NULL;
    }
    return in->pool + page * in->page_stride +
           (int64_t)in->row_bytes * (key % in->caps->page_tokens);
}

/* *magnitude: the same sum of absolute values. */
static double score_of(const problem *in, int64_t query_index, const unsigned char *row,
                       double *magnitude)
{
    int32_t width = in->caps->latent_dim + in->caps->rope_dim;
    double sum = 0;
    double absolute = 0;
    for (int32_t first = 0; first < width; first += CHUNK) {
        double q[CHUNK] = {0};
        double k[CHUNK] = {0};
        read_query(in, query_index, first, q);
        read_key(in, row, first, k);
        for (int32_t i = 0; i < CHUNK; i++) {
            sum += q[i] * k[i];
            absolute += fabs(q[i] * k[i]);
        }
    }
    *magnitude = absolute * (double)in->caps->softmax_scale;
    return sum * (double)in->caps->softmax_scale;
}

static void add_values(const problem *in, const unsigned char *row, double p, double *out,
                       double *magnitude)
{
    for (int32_t first = 0; first < in->caps->latent_dim; first += CHUNK) {
        double v[CHUNK] = {0};
        read_key(in, row, first, v);
        for (int32_t i = 0; i < CHUNK; i++) {
            out[first + i] += p * v[i];
            if (magnitude) {
                magnitude[first + i] += p * fabs(v[i]);
            }
        }
    }
}

/* The largest score, NaN aside; -inf where no key counts. */
static double top_score(const problem *in, int64_t query_index, const int32_t *table,
                        range keys, double *largest_magnitude)
{
    double top = -HUGE_VAL;
    *largest_magnitude = 0;
    for (int64_t key = keys.begin; key < keys.end; key++) {
        const unsigned char *row = find_key(in, table, key);
        if (row) {
            double magnitude;
            top = fmax(top, score_of(in, query_index, row, &magnitude));
            *largest_magnitude = isfinite(magnitude) ? fmax(*largest_magnitude, magnitude)
                                                     : *largest_magnitude;
        }
    }
    return top;
}

static void divide(double *values, int32_t num, double by)
{
    for (int32_t d = 0; values && d < num; d++) {
        values[d] /= by;
    }
}

static void attend_query(const problem *in, int64_t query_index, const int32_t *table,
                         range keys, const mlai_oracle_out *to)
{
    int32_t latent_dim = in->caps->latent_dim;
    double *out = to->out + query_index * latent_dim;
    double *magnitude = to->magnitude ? to->magnitude + query_index * latent_dim : NULL;
    memset(out, 0, (size_t)latent_dim * sizeof *out);
    if (magnitude) {
        memset(magnitude, 0, (size_t)latent_dim * sizeof *magnitude);
    }
    double largest;
    double top = top_score(in, query_index, table, keys, &largest);
    double base = top == -HUGE_VAL ? 0 : top;
    double weight = 0;
    for (int64_t key = keys.begin; key < keys.end; key++) {
        const unsigned char *row = find_key(in, table, key);
        if (row) {
            double unused;
            double p = exp(score_of(in, query_index, row, &unused) - base);
            weight += p;
            add_values(in, row, p, out, magnitude);
        }
    }
    bool is_empty = weight == 0;
    to->lse[query_index] = is_empty ? -HUGE_VAL : base + log(weight);
    if (!is_empty) {
        divide(out, latent_dim, weight);
        divide(magnitude, latent_dim, weight);
    }
    if (to->score_magnitude) {
        to->score_magnitude[query_index] = largest;
    }
}

/* The last query sits on the last key; a window ends where the causal view ends. */
static range visible_keys(const mla_caps *caps, int64_t length, int64_t num_rows,
                          int64_t row)
{
    int64_t end = length;
    if (caps->causal) {
        end = length - num_rows + row + 1;
        end = end < 0 ? 0 : end > length ? length : end;
    }
    int64_t begin = caps->window > 0 && end > caps->window ? end - caps->window : 0;
    return (range){begin, end};
}

static int64_t length_of(const mla_caps *caps, int32_t stored)
{
    int64_t capacity = (int64_t)caps->table_width * caps->page_tokens;
    return stored < 0 ? 0 : stored > capacity ? capacity : stored;
}

static problem problem_of(const mla_caps *caps, const mla_buffers *buffers)
{
    size_t row_bytes = mla_kv_row_bytes(caps->kv_format, caps->latent_dim, caps->rope_dim);
    return (problem){
        .caps = caps,
        .pool = buffers->kv_pool.data,
        .query = buffers->query.data,
        .kv_scale = caps->kv_format == MLA_KV_FP8 ? of_f32(buffers->kv_scale.data) : 1,
        .query_scale =
            caps->query_dtype == MLA_E4M3 ? of_f32(buffers->query_scale.data) : 1,
        .page_stride = caps->page_stride_bytes ? caps->page_stride_bytes
                                               : caps->page_tokens * (int64_t)row_bytes,
        .row_bytes = row_bytes,
    };
}

void mlai_oracle_attend(const mla_caps *caps, const mla_buffers *buffers,
                        const mla_batch *batch, const mlai_oracle_out *out)
{
    problem in = problem_of(caps, buffers);
    const int32_t *lens = buffers->context_lens.data;
    const int32_t *starts = buffers->query_starts.data;
    const int32_t *tables = buffers->block_table.data;
    for (int32_t request = 0; request < batch->num_requests; request++) {
        int64_t length = length_of(caps, lens[request]);
        int64_t num_rows = (int64_t)starts[request + 1] - starts[request];
        for (int64_t row = 0; row < num_rows; row++) {
            range keys = visible_keys(caps, length, num_rows, row);
            for (int64_t head = 0; head < caps->num_heads; head++) {
                attend_query(&in, (starts[request] + row) * caps->num_heads + head,
                             tables + (int64_t)request * caps->table_width, keys, out);
            }
        }
    }
}
