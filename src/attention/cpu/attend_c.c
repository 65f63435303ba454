/* attend_c.c - attention of one task in portable C: the reference for every other level.
 *
 * For each tile of keys: its rows become f32 once; then each (row, head) takes the scores
 * of the tokens it sees, raises its running maximum m, and adds exp(score - m) and
 * exp(score - m) * value to its sums, which are scaled down by exp(old m - new m) first.
 * The output is the second sum over the first. All arithmetic is f32. */
#include <math.h>
#include <string.h>

#include "attention/cpu/kernels.h"
#include "attention/cpu/merge.h"
#include "attention/cpu/tile.h"
#include "attention/row_layout.h"
#include "base/convert.h"

enum { LANES = 8 /* running sums of a dot product */, ALIGN = 64 };

typedef struct work {
    float *keys;    /* [MLAI_TILE_TOKENS][D+R] */
    float *query;   /* [D+R] of the (row, head) in hand */
    float *tile;    /* [D] its sum over the tile in hand */
    float *top;     /* [num_rows][num_heads] largest score so far; -inf at first */
    float *weight;  /* [num_rows][num_heads] sum of exp(score - top) */
    uint64_t valid; /* tokens of the tile whose row is in `keys` */
} work;

static size_t padded(size_t num_floats)
{
    return (num_floats * sizeof(float) + (ALIGN - 1)) / ALIGN * ALIGN;
}

static size_t scratch_bytes(int32_t num_queries, int32_t latent_dim, int32_t rope_dim)
{
    size_t width = (size_t)latent_dim + (size_t)rope_dim;
    return padded(MLAI_TILE_TOKENS * width) + 2 * padded(width) +
           2 * padded((size_t)num_queries);
}

static void *carve(unsigned char **at, size_t num_floats)
{
    void *piece = *at;
    *at += padded(num_floats);
    return piece;
}

static work lay_out(const mlai_attend_task *task)
{
    size_t width = (size_t)task->kv->latent_dim + (size_t)task->kv->rope_dim;
    size_t num_queries = (size_t)task->num_rows * (size_t)task->num_heads;
    unsigned char *at = task->scratch;
    work w = {.valid = 0};
    w.keys = carve(&at, MLAI_TILE_TOKENS * width);
    w.query = carve(&at, width);
    w.tile = carve(&at, width);
    w.top = carve(&at, num_queries);
    w.weight = carve(&at, num_queries);
    return w;
}

static float *out_of(const mlai_attend_task *task, int32_t row, int32_t head)
{
    return task->out + (size_t)row * task->out_row_stride +
           (size_t)head * (size_t)task->kv->latent_dim;
}

static void clear(const mlai_attend_task *task, const work *w)
{
    for (int32_t row = 0; row < task->num_rows; row++) {
        for (int32_t head = 0; head < task->num_heads; head++) {
            size_t at = (size_t)row * (size_t)task->num_heads + (size_t)head;
            w->top[at] = -INFINITY;
            w->weight[at] = 0.0F;
            memset(out_of(task, row, head), 0,
                   (size_t)task->kv->latent_dim * sizeof(float));
        }
    }
}

/* Rows that no query needs, and those of pages outside the pool, are not touched. */
static void load_tile(const mlai_attend_task *task, int64_t begin, work *w)
{
    const mlai_kv_view *kv = task->kv;
    size_t width = (size_t)kv->latent_dim + (size_t)kv->rope_dim;
    uint64_t needed = mlai_tile_needed(task, begin);
    w->valid = 0;
    for (int32_t t = 0; t < MLAI_TILE_TOKENS; t++) {
        if ((needed >> t & 1) == 0) {
            continue;
        }
        const unsigned char *row = mlai_kv_row(kv, task->table, begin + t);
        if (row) {
            mlai_row_decode(kv->format, kv->latent_dim, kv->rope_dim, row, kv->scale,
                            w->keys + (size_t)t * width);
            w->valid |= UINT64_C(1) << t;
        }
    }
}

static void load_query(const mlai_attend_task *task, int32_t row, int32_t head, float *to)
{
    size_t width = (size_t)task->kv->latent_dim + (size_t)task->kv->rope_dim;
    size_t first = (size_t)row * task->query_row_stride + (size_t)head * width;
    const unsigned char *from =
        (const unsigned char *)task->query + first * mlai_query_bytes(task->query_dtype);
    for (size_t i = 0; i < width; i++) {
        if (task->query_dtype == MLA_F32) {
            memcpy(&to[i], from + i * sizeof(float), sizeof(float));
        } else if (task->query_dtype == MLA_BF16) {
            uint16_t bits;
            memcpy(&bits, from + i * sizeof bits, sizeof bits);
            to[i] = mlai_f32_from_bf16(bits);
        } else {
            to[i] = mlai_f32_from_e4m3(from[i]) * task->query_scale;
        }
    }
}

/* LANES sums rather than one: shorter chains of rounding, and vectors for the compiler. */
static float dot(const float *a, const float *b, int32_t width)
{
    float sum[LANES] = {0};
    for (int32_t i = 0; i < width; i += LANES) {
        for (int32_t lane = 0; lane < LANES; lane++) {
            sum[lane] += a[i + lane] * b[i + lane];
        }
    }
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) +
           ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

/* Scores of the visible tokens of a span. Returns their maximum; NaN does not count. */
static float score_span(const mlai_attend_task *task, const work *w, mlai_tile_span span,
                        float *score)
{
    int32_t width = task->kv->latent_dim + task->kv->rope_dim;
    float top = -INFINITY;
    for (int32_t t = span.first; t < span.last; t++) {
        if (w->valid >> t & 1) {
            score[t] = dot(w->query, w->keys + (size_t)t * (size_t)width, width) *
                       task->softmax_scale;
            top = score[t] > top ? score[t] : top;
        }
    }
    return top;
}

static void add_scaled(float *out, const float *value, float factor, int32_t num)
{
    for (int32_t d = 0; d < num; d++) {
        out[d] += factor * value[d];
    }
}

/* A tile is summed on its own and then added to what earlier tiles left: the chains of
 * rounding stay short. */
static void add_tile(float *out, float shrink, const float *tile, int32_t num)
{
    for (int32_t d = 0; d < num; d++) {
        out[d] = out[d] * shrink + tile[d];
    }
}

/* One (row, head) over one tile. Scores of -inf only (top stays -inf) weigh nothing. */
static void attend_span(const mlai_attend_task *task, const work *w, mlai_tile_span span,
                        int32_t row, int32_t head)
{
    size_t index = (size_t)row * (size_t)task->num_heads + (size_t)head;
    float *out = out_of(task, row, head);
    int32_t latent_dim = task->kv->latent_dim;
    size_t width = (size_t)latent_dim + (size_t)task->kv->rope_dim;
    float score[MLAI_TILE_TOKENS];
    load_query(task, row, head, w->query);
    float tile_top = score_span(task, w, span, score);
    float top = tile_top > w->top[index] ? tile_top : w->top[index];
    float base = top == -INFINITY ? 0.0F : top;
    float shrink = expf(w->top[index] - base);
    float weight = 0.0F;
    memset(w->tile, 0, (size_t)latent_dim * sizeof *w->tile);
    for (int32_t t = span.first; t < span.last; t++) {
        if (w->valid >> t & 1) {
            float p = expf(score[t] - base);
            weight += p;
            add_scaled(w->tile, w->keys + (size_t)t * width, p, latent_dim);
        }
    }
    add_tile(out, shrink, w->tile, latent_dim);
    w->weight[index] = w->weight[index] * shrink + weight;
    w->top[index] = top;
}

static void attend_tile(const mlai_attend_task *task, const work *w, int64_t begin)
{
    for (int32_t row = 0; row < task->num_rows; row++) {
        mlai_tile_span span = mlai_tile_span_of(task->visible[row], task->split, begin);
        if (span.first >= span.last) {
            continue;
        }
        for (int32_t head = 0; head < task->num_heads; head++) {
            attend_span(task, w, span, row, head);
        }
    }
}

static void finish(const mlai_attend_task *task, const work *w)
{
    for (int32_t row = 0; row < task->num_rows; row++) {
        for (int32_t head = 0; head < task->num_heads; head++) {
            size_t index = (size_t)row * (size_t)task->num_heads + (size_t)head;
            float *lse = task->lse + (size_t)row * task->lse_row_stride + head;
            if (w->weight[index] == 0.0F) {
                *lse = -INFINITY;
                continue;
            }
            float *out = out_of(task, row, head);
            for (int32_t d = 0; d < task->kv->latent_dim; d++) {
                out[d] /= w->weight[index];
            }
            *lse = w->top[index] + logf(w->weight[index]);
        }
    }
}

static void attend(const mlai_attend_task *task)
{
    work w = lay_out(task);
    clear(task, &w);
    mlai_key_range keys = mlai_task_keys(task);
    for (int64_t begin = keys.begin; begin < keys.end; begin += MLAI_TILE_TOKENS) {
        load_tile(task, begin, &w);
        attend_tile(task, &w, begin);
    }
    finish(task, &w);
}

const mlai_cpu_kernels mlai_cpu_kernels_c = {
    .name = "c",
    .isa = MLA_ISA_C,
    .attend_scratch_bytes = scratch_bytes,
    .attend = attend,
    .merge = mlai_attend_merge,
};
