/* run.c - the tasks of a run, and how their partials become its result: see run.h. */
#include "attention/cpu/run.h"

#include <math.h>
#include <string.h>

#include "attention/batch.h"
#include "base/convert.h"
#include "base/size.h"

/* What every task of a run reads. */
typedef struct run_state {
    const mlai_cpu_kernels *kernels;
    const mlai_launch *launch;
    const mlai_schedule *schedule;
    mlai_cpu_layout at;
    mlai_kv_view kv;
    float query_scale;
    unsigned char *workspace;
} run_state;

/* Partials of a group: out [rows][H][D], lse [rows][H]. */
typedef struct partial {
    float *out, *lse;
} partial;

static unsigned char *worker_of(const run_state *run, int32_t worker)
{
    return run->workspace + run->at.workers + (size_t)worker * run->at.worker_bytes;
}

static partial slot_of(const run_state *run, int32_t slot)
{
    unsigned char *at = run->workspace + run->at.slots + (size_t)slot * run->at.slot_bytes;
    return (partial){(void *)at, (void *)(at + run->at.slot_lse)};
}

static const mla_caps *caps_of(const run_state *run)
{
    return &run->launch->geometry->caps;
}

/* Heads [first, first + num) of a group: what one task works on. Partials are laid out for
 * all heads, whoever fills them. */
typedef struct head_block {
    int32_t first, num;
} head_block;

static head_block block_of(const run_state *run, int64_t index, int32_t block_heads)
{
    int32_t first = (int32_t)index * block_heads;
    int32_t left = caps_of(run)->num_heads - first;
    return (head_block){first, left < block_heads ? left : block_heads};
}

/* The query `head` of `row`, counted from the group's first. */
static size_t query_of(const run_state *run, int32_t row, int32_t head)
{
    return (size_t)row * (size_t)caps_of(run)->num_heads + (size_t)head;
}

static void list_visible(const run_state *run, const mlai_group *group,
                         mlai_key_range *visible)
{
    const mla_caps *caps = caps_of(run);
    for (int32_t i = 0; i < group->num_rows; i++) {
        visible[i] =
            mlai_visible_keys(group->length, group->request_rows, group->request_row + i,
                              caps->causal != 0, caps->window);
    }
}

/* Attends one split of a group into `to`. */
static void attend_split(const run_state *run, const mlai_group *group, head_block heads,
                         int32_t split, partial to, unsigned char *worker)
{
    const mla_caps *caps = caps_of(run);
    const mla_buffers *buffers = run->launch->buffers;
    const mlai_geometry *geometry = run->launch->geometry;
    size_t row_heads = (size_t)caps->num_heads;
    size_t width = (size_t)caps->latent_dim + (size_t)caps->rope_dim;
    const unsigned char *query = buffers->query.data;
    query += (size_t)group->first_row * geometry->query_row_bytes;
    query += (size_t)heads.first * (geometry->query_row_bytes / row_heads);
    const int32_t *tables = buffers->block_table.data;
    int64_t begin = (group->first_split + split) * group->split_tokens;
    mlai_key_range *visible = (void *)(worker + run->at.visible);
    list_visible(run, group, visible);
    mlai_attend_task task = {
        .kv = &run->kv,
        .table = tables + (size_t)group->request * (size_t)caps->table_width,
        .split = {begin, begin + group->split_tokens},
        .query = query,
        .query_row_stride = row_heads * width,
        .query_dtype = caps->query_dtype,
        .query_scale = run->query_scale,
        .softmax_scale = caps->softmax_scale,
        .num_rows = group->num_rows,
        .num_heads = heads.num,
        .visible = visible,
        .out = to.out + (size_t)heads.first * (size_t)caps->latent_dim,
        .out_row_stride = row_heads * (size_t)caps->latent_dim,
        .lse = to.lse + heads.first,
        .lse_row_stride = row_heads,
        .scratch = worker + run->at.scratch,
    };
    mlai_programs_note(run->launch->launched, MLAI_CPU_ATTEND);
    run->kernels->attend(&task);
}

/* The next partial of a query goes into what its earlier splits gave. An empty side is
 * passed over here, so that rows may come into a group's splits at different places without
 * a trace in the bits. */
static void fold_query(const run_state *run, size_t query, partial to, partial from)
{
    int32_t latent_dim = caps_of(run)->latent_dim;
    size_t width = (size_t)latent_dim;
    float *sum = to.out + query * width;
    const float *part = from.out + query * width;
    if (from.lse[query] == -INFINITY) {
        return;
    }
    if (to.lse[query] == -INFINITY) {
        memcpy(sum, part, width * sizeof *sum);
        to.lse[query] = from.lse[query];
        return;
    }
    run->kernels->merge(sum, &to.lse[query], part, from.lse[query], latent_dim);
}

static void fold(const run_state *run, const mlai_group *group, head_block heads,
                 partial to, partial from)
{
    mlai_programs_note(run->launch->launched, MLAI_CPU_MERGE);
    for (int32_t row = 0; row < group->num_rows; row++) {
        for (int32_t i = 0; i < heads.num; i++) {
            fold_query(run, query_of(run, row, heads.first + i), to, from);
        }
    }
}

static void round_to_bf16(const float *from, size_t num, uint16_t *to)
{
    for (size_t i = 0; i < num; i++) {
        to[i] = mlai_bf16_from_f32(from[i]);
    }
}

static void write_result(const run_state *run, const mlai_group *group, head_block heads,
                         partial from)
{
    const mlai_geometry *geometry = run->launch->geometry;
    size_t width = (size_t)geometry->caps.latent_dim;
    size_t num = (size_t)heads.num;
    unsigned char *out = run->launch->buffers->output.data;
    float *lse = run->launch->buffers->lse.data;
    for (int32_t row = 0; row < group->num_rows; row++) {
        size_t here = query_of(run, row, heads.first);
        size_t there = query_of(run, group->first_row + row, heads.first);
        const float *values = from.out + here * width;
        if (geometry->caps.output_dtype == MLA_F32) {
            memcpy((float *)(void *)out + there * width, values,
                   num * width * sizeof *values);
        } else {
            round_to_bf16(values, num * width, (uint16_t *)(void *)out + there * width);
        }
        memcpy(lse + there, from.lse + here, num * sizeof *lse);
    }
}

static void write_nothing_seen(const run_state *run, const mlai_group *group,
                               head_block heads, partial to)
{
    size_t width = (size_t)caps_of(run)->latent_dim;
    for (int32_t row = 0; row < group->num_rows; row++) {
        size_t first = query_of(run, row, heads.first);
        memset(to.out + first * width, 0, (size_t)heads.num * width * sizeof *to.out);
        for (int32_t i = 0; i < heads.num; i++) {
            to.lse[first + (size_t)i] = -INFINITY;
        }
    }
}

/* All splits of a group, one after the other. */
static void attend_group(const run_state *run, const mlai_group *group, head_block heads,
                         int32_t index)
{
    unsigned char *worker = worker_of(run, index);
    partial sum = {(void *)(worker + run->at.out), (void *)(worker + run->at.lse)};
    partial part = {(void *)(worker + run->at.part_out),
                    (void *)(worker + run->at.part_lse)};
    if (group->num_splits == 0) {
        write_nothing_seen(run, group, heads, sum);
    }
    for (int32_t split = 0; split < group->num_splits; split++) {
        attend_split(run, group, heads, split, split == 0 ? sum : part, worker);
        if (split > 0) {
            fold(run, group, heads, sum, part);
        }
    }
    write_result(run, group, heads, sum);
}

/* Slots first: they belong to the heaviest groups. */
static void attend_task(void *arg, int64_t index, int32_t worker)
{
    const run_state *run = arg;
    const mlai_schedule *schedule = run->schedule;
    head_block heads =
        block_of(run, index % schedule->num_head_blocks, schedule->block_heads);
    int64_t unit = index / schedule->num_head_blocks;
    if (unit < schedule->num_slots_used) {
        mlai_slot_task task = schedule->slot[unit];
        attend_split(run, &schedule->group[task.group], heads, task.split,
                     slot_of(run, (int32_t)unit), worker_of(run, worker));
        return;
    }
    const mlai_group *group = &schedule->group[unit - schedule->num_slots_used];
    if (group->first_slot < 0) {
        attend_group(run, group, heads, worker);
    }
}

enum { FOLD_HEADS = 8 /* of one task: 128 heads fold on 16 workers */ };

static int64_t num_fold_blocks(const run_state *run)
{
    return mlai_ceil_div(caps_of(run)->num_heads, FOLD_HEADS);
}

static void fold_task(void *arg, int64_t index, int32_t worker)
{
    (void)worker;
    const run_state *run = arg;
    const mlai_group *group = &run->schedule->group[index / num_fold_blocks(run)];
    if (group->first_slot < 0) {
        return;
    }
    head_block heads = block_of(run, index % num_fold_blocks(run), FOLD_HEADS);
    partial sum = slot_of(run, group->first_slot);
    for (int32_t split = 1; split < group->num_splits; split++) {
        fold(run, group, heads, sum, slot_of(run, group->first_slot + split));
    }
    write_result(run, group, heads, sum);
}

static float scale_of(mla_in scale)
{
    return scale.data ? *(const float *)scale.data : 1.0F;
}

static mlai_kv_view view_of(const mlai_launch *launch)
{
    const mlai_geometry *geometry = launch->geometry;
    return (mlai_kv_view){
        .pool = launch->buffers->kv_pool.data,
        .num_pages = geometry->caps.num_pages,
        .page_stride_bytes = (int64_t)geometry->page_stride_bytes,
        .row_bytes = geometry->row_bytes,
        .page_tokens = geometry->caps.page_tokens,
        .latent_dim = geometry->caps.latent_dim,
        .rope_dim = geometry->caps.rope_dim,
        .format = geometry->caps.kv_format,
        .scale = scale_of(launch->buffers->kv_scale),
    };
}

mla_status mlai_cpu_run(mlai_pool *pool, const mlai_cpu_kernels *kernels,
                        const mlai_launch *launch, mlai_schedule *schedule, mla_error *err)
{
    int32_t num_threads = mlai_pool_num_threads(pool);
    const mla_buffers *buffers = launch->buffers;
    run_state run = {.kernels = kernels,
                     .launch = launch,
                     .schedule = schedule,
                     .kv = view_of(launch),
                     .query_scale = scale_of(buffers->query_scale),
                     .workspace = buffers->workspace.data};
    MLAI_TRY(mlai_batch_check_starts(launch->geometry, launch->batch,
                                     buffers->query_starts.data, err));
    MLAI_TRY(mlai_cpu_layout_of(launch->geometry, kernels, num_threads, &run.at, err));
    if (!schedule->group) {
        schedule->group = (void *)(run.workspace + run.at.groups);
        schedule->slot = (void *)(run.workspace + run.at.slot_tasks);
    }
    mlai_schedule_in in = {.geometry = launch->geometry,
                           .batch = launch->batch,
                           .context_lens = buffers->context_lens.data,
                           .query_starts = buffers->query_starts.data,
                           .num_threads = num_threads};
    mlai_schedule_build(&in, schedule);
    int64_t num_units = (int64_t)schedule->num_slots_used + schedule->num_groups;
    mlai_pool_run(pool, num_units * schedule->num_head_blocks, attend_task, &run);
    if (schedule->num_slots_used > 0) {
        mlai_pool_run(pool, schedule->num_groups * num_fold_blocks(&run), fold_task, &run);
    }
    return MLA_OK;
}
