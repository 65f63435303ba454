/* bench_cuda.c - `mla bench attention --device cuda`: every shape in every format, by the
 * method of docs/kernels/attend_cuda.md. */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/bench_rotation.h"
#include "cli/bench_row.h"
#include "cli/progress_bar.h"

static const mla_kv_format formats[] = {MLA_KV_BF16, MLA_KV_FP8, MLA_KV_FP8_G128};
enum { NUM_FORMATS = sizeof formats / sizeof formats[0] };
#define LIMIT_BYTES ((int64_t)8 << 30)
_Static_assert(NUM_FORMATS *BENCH_NUM_SHAPES <= BENCH_MAX_ROWS, "every row has its place");
#define US_PER_NS 1e-3

/* One format's plans. */
typedef struct bench_set {
    int32_t num;
    const bench_shape *shape[BENCH_NUM_SHAPES];
    mla_caps caps[BENCH_NUM_SHAPES];
    mla_plan *plan[BENCH_NUM_SHAPES];
} bench_set;

static bench_set choose(const bench_options *wanted, mla_kv_format format)
{
    bench_set set = {0};
    for (int32_t i = 0; i < BENCH_NUM_SHAPES; i++) {
        const bench_shape *shape = &bench_shapes[i];
        if (!wanted->shape || strstr(shape->name, wanted->shape)) {
            set.shape[set.num] = shape;
            set.caps[set.num] = bench_shape_caps(shape, format);
            set.caps[set.num++].num_pages = bench_rotation_pages(shape, format);
        }
    }
    return set;
}

static void note_progress(void *user, const mla_progress *progress)
{
    mla_progress *now = user;
    *now = *progress;
    progress_bar_draw("preparing", progress->num_primed, progress->num_requests);
}

static mla_status prepare_set(mla_session *session, bench_set *set, mla_error *err)
{
    mla_ticket ticket[BENCH_NUM_SHAPES];
    for (int32_t i = 0; i < set->num; i++) {
        MLAI_TRY(mla_session_add(session, &set->caps[i], NULL, &ticket[i], err));
    }
    MLAI_TRY(mla_session_prepare(session, err));
    for (int32_t i = 0; i < set->num; i++) {
        MLAI_TRY(mla_session_publish(session, ticket[i], &set->plan[i], err));
    }
    return MLA_OK;
}

static mla_status prepare(mla_context *context, const bench_options *wanted, bench_set *set,
                          bench_preparation *sum, mla_error *err)
{
    mla_session *session = NULL;
    mla_progress progress = {0};
    mla_session_options options = MLA_INIT(mla_session_options);
    options.cache_dir = wanted->cache_dir;
    options.progress = note_progress;
    options.progress_user = &progress;
    MLAI_TRY(mla_session_open(context, &options, &session, err));
    int64_t begin_ns = mlai_now_ns();
    mla_status status = prepare_set(session, set, err);
    sum->ms += (double)(mlai_now_ns() - begin_ns) * US_PER_NS * US_PER_NS;
    sum->num_plans += progress.num_requests;
    sum->num_from_cache += progress.num_from_cache;
    mla_session_close(&session);
    return status;
}

/* Rows of the pool, each once, queries and outputs; us: what one took. */
static void add_row(const bench_batch *batch, const char *name, double us,
                    bench_report *report)
{
    bench_row row = bench_row_of(batch, name);
    row.bytes += (double)batch->call.query.bytes + (double)batch->call.output.bytes;
    row.time_ns = (int64_t)(us / US_PER_NS);
    report->rows[report->num_rows++] = row;
}

static mla_status time_shape(const bench_device *device, const bench_pool *pool,
                             const bench_set *set, int32_t i, bench_report *report,
                             mla_error *err)
{
    static bench_rotation rotation;
    double us = 0;
    mla_status status = bench_rotation_open(device, pool, set->shape[i], set->plan[i],
                                            &set->caps[i], &rotation, err);
    if (status == MLA_OK) {
        status = bench_rotation_time(&rotation, &us, err);
    }
    if (status == MLA_OK) {
        add_row(&rotation.batch, set->shape[i]->name, us, report);
    } else {
        mlai_error_prefix(err, "%s", set->shape[i]->name);
    }
    bench_rotation_close(&rotation);
    return status;
}

static int64_t most_pages(const bench_set *set)
{
    int64_t most = 1;
    for (int32_t i = 0; i < set->num; i++) {
        most = set->caps[i].num_pages > most ? set->caps[i].num_pages : most;
    }
    return most;
}

/* On a pool of their own. */
static mla_status measure_limits(const bench_device *device, bench_report *report,
                                 mla_error *err)
{
    mla_caps caps = bench_shape_caps(&bench_shapes[0], MLA_KV_BF16);
    int64_t page_bytes =
        caps.page_tokens *
        (int64_t)mla_kv_row_bytes(caps.kv_format, caps.latent_dim, caps.rope_dim);
    bench_pool pool = {0};
    mla_status status =
        bench_pool_open(device, &caps, LIMIT_BYTES / page_bytes, &pool, err);
    if (status == MLA_OK) {
        status = bench_limits_measure(device, pool.data.data, pool.data.bytes,
                                      &report->device_limits, err);
    }
    bench_pool_close(&pool);
    return status;
}

static mla_status time_set(const bench_device *device, const bench_set *set,
                           bench_report *report, mla_error *err)
{
    bench_pool pool = {0};
    mla_status status = bench_pool_open(device, &set->caps[0], most_pages(set), &pool, err);
    for (int32_t i = 0; i < set->num && status == MLA_OK; i++) {
        progress_bar_draw("timing", i, set->num);
        status = time_shape(device, &pool, set, i, report, err);
    }
    bench_pool_close(&pool);
    return status;
}

static mla_status bench_format(const bench_device *device, const bench_options *wanted,
                               mla_kv_format format, bench_report *report, mla_error *err)
{
    bench_set set = choose(wanted, format);
    MLAI_CHECK(set.num > 0, MLA_ERR_ARGUMENT, "no shape's name contains '%s'",
               wanted->shape);
    mla_status status = prepare(device->context, wanted, &set, &report->preparation, err);
    if (status == MLA_OK) {
        status = time_set(device, &set, report, err);
    }
    for (int32_t i = 0; i < set.num; i++) {
        mla_plan_release(&set.plan[i]);
    }
    return status;
}

static mla_status enqueue_batch(void *user, const bench_device *device, mla_error *err)
{
    const bench_batch *batch = user;
    return mla_run(batch->call.binding, &batch->batch, (mla_stream){device->stream}, err);
}

/* Many replays of one graph: the caches keep what they can. Then against the oracle. */
static mla_status time_plan(const bench_device *device, bench_batch *batch, double *us,
                            mla_error *err)
{
    mlai_cu_graph_exec graph = NULL;
    MLAI_TRY(bench_device_capture(device, enqueue_batch, batch, &graph, err));
    mla_status status = bench_device_time(device, &graph, 1, BENCH_MAX_REPLAYS, us, err);
    bench_device_drop(device, graph);
    MLAI_TRY(status);
    MLAI_TRY(attention_call_fetch(&batch->call, err));
    MLAI_TRY(operand_mirror(device->context, &batch->call.kv_pool, err));
    MLAI_TRY(operand_fetch(device->context, &batch->call.kv_pool, err));
    batch->pool = device->pool;
    return bench_batch_check(batch, err);
}

static mla_status bench_plan(const bench_device *device, const mla_caps *caps,
                             bench_report *report, mla_error *err)
{
    bench_batch batch = {0};
    double us = 0;
    mla_status status = bench_batch_open(device->context, caps, &batch, err);
    if (status == MLA_OK) {
        status = time_plan(device, &batch, &us, err);
    }
    if (status == MLA_OK) {
        add_row(&batch, NULL, us, report);
    }
    bench_batch_free(&batch);
    return status;
}

static mla_status bench_plans(const bench_device *device, const bench_options *wanted,
                              bench_report *report, mla_error *err)
{
    report->shows_plans = true;
    for (int32_t i = 0; i < wanted->num_plans; i++) {
        progress_bar_draw("checking", i, wanted->num_plans);
        mla_status status = bench_plan(device, &wanted->plans[i].caps, report, err);
        if (status != MLA_OK) {
            mlai_error_prefix(err, "plan %d", i + 1);
            return status;
        }
    }
    return measure_limits(device, report, err);
}

static mla_status bench_formats(const bench_device *device, const bench_options *wanted,
                                bench_report *report, mla_error *err)
{
    MLAI_TRY(measure_limits(device, report, err));
    for (int i = 0; i < NUM_FORMATS; i++) {
        MLAI_TRY(bench_format(device, wanted, formats[i], report, err));
    }
    return MLA_OK;
}

mla_status bench_attention_cuda(mla_context *context, const bench_options *wanted,
                                bench_report *report, mla_error *err)
{
    static bench_device device;
    mla_status status = bench_device_open(context, &device, err);
    if (status == MLA_OK) {
        status = wanted->num_plans > 0 ? bench_plans(&device, wanted, report, err)
                                       : bench_formats(&device, wanted, report, err);
    }
    bench_device_close(&device);
    progress_bar_clear();
    return status;
}
