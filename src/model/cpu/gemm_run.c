/* gemm_run.c - cuts products into tiles and hands these to a pool. */
#include "model/cpu/gemm_run.h"

#include "base/size.h"

enum {
    TILE_ROWS = 64,
    TILE_OUTS_NT = 48,
    TILE_OUTS_NN = 64,
    MIN_SHARED_WORK = 1 << 18, /* multiply-adds that pay for waking threads */
};

typedef struct gemm_set {
    const operators *ops;
    gemm_form form;
    const gemm *jobs; /* [num_jobs] */
    int32_t num_jobs;
} gemm_set;

static int32_t tile_outs(gemm_form form)
{
    return form == GEMM_NT ? TILE_OUTS_NT : TILE_OUTS_NN;
}

static int64_t num_tiles_of(const gemm *job, gemm_form form)
{
    return mlai_ceil_div(job->num_rows, TILE_ROWS) *
           mlai_ceil_div(job->num_out, tile_outs(form));
}

static int32_t min_i32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The last job that begins at or before the tile. Jobs without tiles begin where the next
 * one does, so the last is the right one. */
static const gemm *job_of(const gemm_set *set, int64_t index)
{
    int32_t low = 0;
    int32_t high = set->num_jobs;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (set->jobs[middle].first_tile <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &set->jobs[low];
}

static void run_tile(void *arg, int64_t index, int32_t worker)
{
    const gemm_set *set = arg;
    const gemm *job = job_of(set, index);
    int32_t outs = tile_outs(set->form);
    int32_t row_tiles = (int32_t)mlai_ceil_div(job->num_rows, TILE_ROWS);
    int32_t tile_index = (int32_t)(index - job->first_tile);
    gemm_tile tile = {.row_begin = tile_index % row_tiles * TILE_ROWS,
                      .out_begin = tile_index / row_tiles * outs};
    (void)worker;
    tile.row_end = min_i32(tile.row_begin + TILE_ROWS, job->num_rows);
    tile.out_end = min_i32(tile.out_begin + outs, job->num_out);
    if (set->form == GEMM_NT) {
        set->ops->gemm_nt(job, &tile);
    } else {
        set->ops->gemm_nn(job, &tile);
    }
}

void gemm_run(const operators *ops, mlai_pool *pool, gemm_form form, gemm *jobs,
              int32_t num_jobs)
{
    int64_t num_tiles = 0;
    int64_t work = 0;
    for (int32_t i = 0; i < num_jobs; i++) {
        jobs[i].first_tile = num_tiles;
        num_tiles += num_tiles_of(&jobs[i], form);
        work += (int64_t)jobs[i].num_rows * jobs[i].num_out * jobs[i].depth;
    }
    gemm_set set = {ops, form, jobs, num_jobs};
    if (work >= MIN_SHARED_WORK) {
        mlai_pool_run(pool, num_tiles, run_tile, &set);
        return;
    }
    for (int64_t i = 0; i < num_tiles; i++) {
        run_tile(&set, i, 0);
    }
}

gemm gemm_of_matrix(const matrix *w, const float *x, int32_t num_rows, float *y)
{
    return (gemm){
        .w = w->data,
        .w_stride = (size_t)w->num_in,
        .w_dtype = w->dtype,
        .num_out = w->num_out,
        .depth = w->num_in,
        .x = x,
        .x_stride = (size_t)w->num_in,
        .y = y,
        .y_stride = (size_t)w->num_out,
        .y_out_stride = 1,
        .num_rows = num_rows,
    };
}
