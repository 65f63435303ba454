/* attend_avx2.c - attention of one task with AVX2, FMA and F16C.
 *
 * A tile of keys becomes f32 once. Then, for each run of rows that see the same tokens of
 * it (all heads of all of them together): scores, a step of the running softmax, values.
 * A row's tokens outside its span take no part at all: they are not multiplied by 0, so
 * that another row's NaN, or the sign of a zero, cannot reach it. */
#include <math.h>
#include <string.h>

#include "attention/cpu/blocks_avx2.h"
#include "attention/cpu/kernels.h"
#include "attention/cpu/merge.h"
#include "attention/cpu/rows_avx2.h"
#include "attention/cpu/softmax_avx2.h"
#include "attention/cpu/tile.h"

enum { LINE_BYTES = 64, LINE_FLOATS = 16, TOKEN_STEP = 8 };

typedef struct work {
    size_t width;      /* D+R */
    size_t key_stride; /* an odd number of cache lines: columns spread over all sets */
    float *keys;       /* [MLAI_TILE_TOKENS][key_stride] */
    float *query;      /* [num_queries][width] */
    float *score;      /* [num_queries][MLAI_TILE_TOKENS], then probabilities */
    float *top;        /* [num_queries] largest score so far; -inf at first */
    float *weight;     /* [num_queries] sum of exp(score - top) */
    float *shrink;     /* [num_queries] of the tile in hand */
    float **out;       /* [num_queries] */
    uint64_t valid;    /* tokens of the tile that are in `keys` */
} work;

static size_t padded(size_t num_bytes)
{
    return (num_bytes + (LINE_BYTES - 1)) / LINE_BYTES * LINE_BYTES;
}

static size_t key_stride_of(size_t width)
{
    size_t lines = (width + (LINE_FLOATS - 1)) / LINE_FLOATS;
    return (lines | 1) * LINE_FLOATS;
}

/* The one list of what lies in scratch: sizes it and, with `w`, hands it out. */
static size_t lay_out(unsigned char *at, size_t num_queries, size_t width, work *w)
{
    size_t bytes[] = {
        MLAI_TILE_TOKENS * key_stride_of(width) * sizeof(float),
        num_queries * width * sizeof(float),
        num_queries * MLAI_TILE_TOKENS * sizeof(float),
        num_queries * sizeof(float),
        num_queries * sizeof(float),
        num_queries * sizeof(float),
        num_queries * sizeof(float *),
    };
    enum { NUM_PIECES = sizeof bytes / sizeof bytes[0] };
    size_t offset[NUM_PIECES];
    size_t total = 0;
    for (int i = 0; i < NUM_PIECES; i++) {
        offset[i] = total;
        total += padded(bytes[i]);
    }
    if (w) {
        w->width = width;
        w->key_stride = key_stride_of(width);
        w->keys = (void *)(at + offset[0]);
        w->query = (void *)(at + offset[1]);
        w->score = (void *)(at + offset[2]);
        w->top = (void *)(at + offset[3]);
        w->weight = (void *)(at + offset[4]);
        w->shrink = (void *)(at + offset[5]);
        w->out = (void *)(at + offset[6]);
    }
    return total;
}

static size_t scratch_bytes(int32_t num_queries, int32_t latent_dim, int32_t rope_dim)
{
    return lay_out(NULL, (size_t)num_queries, (size_t)latent_dim + (size_t)rope_dim, NULL);
}

/* The output itself holds the running sums. */
static void begin_sums(const mlai_attend_task *task, const work *w)
{
    size_t latent_dim = (size_t)task->kv->latent_dim;
    size_t num_heads = (size_t)task->num_heads;
    for (size_t i = 0; i < (size_t)task->num_rows * num_heads; i++) {
        w->top[i] = -INFINITY;
        w->weight[i] = 0.0F;
        w->out[i] =
            task->out + i / num_heads * task->out_row_stride + i % num_heads * latent_dim;
        memset(w->out[i], 0, latent_dim * sizeof(float));
    }
}

/* Rows that nobody needs are not read; they are zeroed where a block of scores passes over
 * them, and so are those of pages outside the pool. */
static void load_tile(const mlai_attend_task *task, int64_t begin, work *w)
{
    uint64_t needed = mlai_tile_needed(task, begin);
    w->valid = 0;
    for (int32_t t = 0; t < MLAI_TILE_TOKENS; t++) {
        float *to = w->keys + (size_t)t * w->key_stride;
        if (needed >> t & 1) {
            const unsigned char *row = mlai_kv_row(task->kv, task->table, begin + t);
            if (row) {
                mlai_row_decode_avx2(task->kv, row, to);
                w->valid |= UINT64_C(1) << t;
                continue;
            }
        }
        if (needed >> (t / TOKEN_STEP * TOKEN_STEP) & 0xff) {
            memset(to, 0, w->width * sizeof(float));
        }
    }
}

/* num rows from `row` on, which all attend `span`. */
static void attend_run(const mlai_attend_task *task, const work *w, int32_t row,
                       int32_t num, mlai_tile_span span)
{
    size_t first = (size_t)row * (size_t)task->num_heads;
    size_t num_queries = (size_t)num * (size_t)task->num_heads;
    float *score = w->score + first * MLAI_TILE_TOKENS;
    mlai_scores_avx2(&(mlai_scores){
        .query = w->query + first * w->width,
        .num_queries = num_queries,
        .keys = w->keys,
        .key_stride = w->key_stride,
        .width = w->width,
        .span = span,
        .score = score,
    });
    uint64_t counted = mlai_tile_mask_of(span) & w->valid;
    for (size_t i = 0; i < num_queries; i++) {
        w->shrink[first + i] = mlai_softmax_step_avx2(
            score + i * MLAI_TILE_TOKENS, counted, task->softmax_scale, w->top + first + i,
            w->weight + first + i);
    }
    mlai_values_avx2(&(mlai_values){
        .p = score,
        .shrink = w->shrink + first,
        .num_queries = num_queries,
        .values = w->keys,
        .value_stride = w->key_stride,
        .latent_dim = (size_t)task->kv->latent_dim,
        .span = span,
        .out = w->out + first,
    });
}

static void attend_tile(const mlai_attend_task *task, const work *w, int64_t begin)
{
    for (int32_t row = 0; row < task->num_rows;) {
        mlai_tile_span span = mlai_tile_span_of(task->visible[row], task->split, begin);
        int32_t end = row + 1;
        for (; end < task->num_rows; end++) {
            mlai_tile_span next = mlai_tile_span_of(task->visible[end], task->split, begin);
            if (next.first != span.first || next.last != span.last) {
                break;
            }
        }
        if (span.first < span.last) {
            attend_run(task, w, row, end - row, span);
        }
        row = end;
    }
}

static void finish(const mlai_attend_task *task, const work *w)
{
    size_t latent_dim = (size_t)task->kv->latent_dim;
    size_t num_heads = (size_t)task->num_heads;
    for (size_t i = 0; i < (size_t)task->num_rows * num_heads; i++) {
        float *lse = task->lse + i / num_heads * task->lse_row_stride + i % num_heads;
        if (w->weight[i] == 0.0F) {
            *lse = -INFINITY;
            continue;
        }
        for (size_t d = 0; d < latent_dim; d++) {
            w->out[i][d] /= w->weight[i];
        }
        *lse = w->top[i] + logf(w->weight[i]);
    }
}

static void load_queries(const mlai_attend_task *task, const work *w)
{
    size_t row_values = (size_t)task->num_heads * w->width;
    size_t row_bytes = task->query_row_stride * mlai_query_bytes(task->query_dtype);
    for (int32_t row = 0; row < task->num_rows; row++) {
        mlai_numbers_decode_avx2(
            task->query_dtype, (const unsigned char *)task->query + (size_t)row * row_bytes,
            row_values, task->query_scale, w->query + (size_t)row * row_values);
    }
}

static void attend(const mlai_attend_task *task)
{
    work w = {.valid = 0};
    size_t width = (size_t)task->kv->latent_dim + (size_t)task->kv->rope_dim;
    size_t num_queries = (size_t)task->num_rows * (size_t)task->num_heads;
    (void)lay_out(task->scratch, num_queries, width, &w);
    begin_sums(task, &w);
    load_queries(task, &w);
    mlai_key_range keys = mlai_task_keys(task);
    for (int64_t begin = keys.begin; begin < keys.end; begin += MLAI_TILE_TOKENS) {
        load_tile(task, begin, &w);
        attend_tile(task, &w, begin);
    }
    finish(task, &w);
}

const mlai_cpu_kernels mlai_cpu_kernels_avx2 = {
    .name = "avx2",
    .isa = MLA_ISA_AVX2,
    .attend_scratch_bytes = scratch_bytes,
    .attend = attend,
    .merge = mlai_attend_merge,
};
