/* run.c - the tasks of a run, and how their partials become its result: see run.h. */
#include "attention/cpu/run.h"

#include <math.h>
#include <string.h>

#include "attention/batch.h"
#include "base/convert.h"

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

static size_t queries_of(const run_state *run, const mlai_group *group)
{
    return (size_t)group->num_rows * (size_t)caps_of(run)->num_heads;
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
static void attend_split(const run_state *run, const mlai_group *group, int32_t split,
                         partial to, unsigned char *worker)
{
    const mla_caps *caps = caps_of(run);
    const mla_buffers *buffers = run->launch->buffers;
    const unsigned char *query = buffers->query.data;
    const int32_t *tables = buffers->block_table.data;
    int64_t begin = (group->first_split + split) * group->split_tokens;
    mlai_key_range *visible = (void *)(worker + run->at.visible);
    list_visible(run, group, visible);
    mlai_attend_task task = {
        .kv = &run->kv,
        .table = tables + (size_t)group->request * (size_t)caps->table_width,
        .split = {begin, begin + group->split_tokens},
        .query = query + (size_t)group->first_row * run->launch->geometry->query_row_bytes,
        .query_dtype = caps->query_dtype,
        .query_scale = run->query_scale,
        .softmax_scale = caps->softmax_scale,
        .num_rows = group->num_rows,
        .num_heads = caps->num_heads,
        .visible = visible,
        .out = to.out,
        .out_row_stride = (size_t)caps->num_heads * (size_t)caps->latent_dim,
        .lse = to.lse,
        .lse_row_stride = (size_t)caps->num_heads,
        .scratch = worker + run->at.scratch,
    };
    mlai_programs_note(run->launch->launched, MLAI_CPU_ATTEND);
    run->kernels->attend(&task);
}

/* The next partial of each query goes into what its earlier splits gave. An empty side is
 * passed over here, so that rows may come into a group's splits at different places without
 * a trace in the bits. */
static void fold(const run_state *run, size_t num_queries, partial to, partial from)
{
    int32_t latent_dim = caps_of(run)->latent_dim;
    size_t width = (size_t)latent_dim;
    mlai_programs_note(run->launch->launched, MLAI_CPU_MERGE);
    for (size_t i = 0; i < num_queries; i++) {
        if (from.lse[i] == -INFINITY) {
            continue;
        }
        if (to.lse[i] == -INFINITY) {
            memcpy(to.out + i * width, from.out + i * width, width * sizeof(float));
            to.lse[i] = from.lse[i];
            continue;
        }
        run->kernels->merge(to.out + i * width, &to.lse[i], from.out + i * width,
                            from.lse[i], latent_dim);
    }
}

static void round_to_bf16(const float *from, size_t num, uint16_t *to)
{
    for (size_t i = 0; i < num; i++) {
        to[i] = mlai_bf16_from_f32(from[i]);
    }
}

static void write_result(const run_state *run, const mlai_group *group, partial from)
{
    const mlai_geometry *geometry = run->launch->geometry;
    size_t queries = queries_of(run, group);
    size_t values = queries * (size_t)geometry->caps.latent_dim;
    unsigned char *out = run->launch->buffers->output.data;
    unsigned char *lse = run->launch->buffers->lse.data;
    out += (size_t)group->first_row * geometry->output_row_bytes;
    lse += (size_t)group->first_row * geometry->lse_row_bytes;
    if (geometry->caps.output_dtype == MLA_F32) {
        memcpy(out, from.out, values * sizeof(float));
    } else {
        round_to_bf16(from.out, values, (void *)out);
    }
    memcpy(lse, from.lse, queries * sizeof(float));
}

static void write_nothing_seen(partial to, size_t queries, int32_t latent_dim)
{
    memset(to.out, 0, queries * (size_t)latent_dim * sizeof(float));
    for (size_t i = 0; i < queries; i++) {
        to.lse[i] = -INFINITY;
    }
}

/* All splits of a group, one after the other. */
static void attend_group(const run_state *run, const mlai_group *group, int32_t index)
{
    unsigned char *worker = worker_of(run, index);
    size_t queries = queries_of(run, group);
    partial sum = {(void *)(worker + run->at.out), (void *)(worker + run->at.lse)};
    partial part = {(void *)(worker + run->at.part_out),
                    (void *)(worker + run->at.part_lse)};
    if (group->num_splits == 0) {
        write_nothing_seen(sum, queries, caps_of(run)->latent_dim);
    }
    for (int32_t split = 0; split < group->num_splits; split++) {
        attend_split(run, group, split, split == 0 ? sum : part, worker);
        if (split > 0) {
            fold(run, queries, sum, part);
        }
    }
    write_result(run, group, sum);
}

/* Slots first: they belong to the heaviest groups. */
static void attend_task(void *arg, int64_t index, int32_t worker)
{
    const run_state *run = arg;
    const mlai_schedule *schedule = run->schedule;
    if (index < schedule->num_slots_used) {
        mlai_slot_task task = schedule->slot[index];
        attend_split(run, &schedule->group[task.group], task.split,
                     slot_of(run, (int32_t)index), worker_of(run, worker));
        return;
    }
    const mlai_group *group = &schedule->group[index - schedule->num_slots_used];
    if (group->first_slot < 0) {
        attend_group(run, group, worker);
    }
}

static void fold_task(void *arg, int64_t index, int32_t worker)
{
    (void)worker;
    const run_state *run = arg;
    const mlai_group *group = &run->schedule->group[index];
    if (group->first_slot < 0) {
        return;
    }
    partial sum = slot_of(run, group->first_slot);
    for (int32_t split = 1; split < group->num_splits; split++) {
        fold(run, queries_of(run, group), sum, slot_of(run, group->first_slot + split));
    }
    write_result(run, group, sum);
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
    mlai_pool_run(pool, (int64_t)schedule->num_slots_used + schedule->num_groups,
                  attend_task, &run);
    if (schedule->num_slots_used > 0) {
        mlai_pool_run(pool, schedule->num_groups, fold_task, &run);
    }
    return MLA_OK;
}
