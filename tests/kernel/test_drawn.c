/* test_drawn.c - the kernels through the public API on drawn cases, each between red zones: one
 * run against the oracle, each request alone against itself among the others, appended rows
 * against the layout, and on a GPU the merge against its own partial results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above */
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/cuda/launcher.h"
#include "attention/plan.h"
#include "attention/row_layout.h"
#include "base/convert.h"
#include "support/cuda_cases.h"
#include "support/gpu.h"
#include "support/must.h"
#include "support/placed_case.h"
#include "support/rig.h"

enum { NUM_CASES = 120, ALL_ONES = 0xff };

/* A case, its plan, and where it lies. */
typedef struct stage {
    attend_case *c;
    mla_context *context; /* borrowed */
    mla_plan *plan;
    mla_binding *binding;
    placed_case placed;
    size_t output_row_bytes, lse_row_bytes, query_row_bytes;
} stage;

static stage stage_open(attend_case *c, mla_context *context)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_requirements need = MLA_INIT(mla_requirements);
    size_t most_rows = (size_t)c->caps.max_query_rows;
    stage s = {.c = c, .context = context, .plan = rig_plan(context, &c->caps)};
    must(mla_plan_requirements(s.plan, &need, &err), &err);
    s.placed = placed_take(c, &need);
    s.output_row_bytes = need.output.bytes / most_rows;
    s.lse_row_bytes = need.lse.bytes / most_rows;
    s.query_row_bytes = need.query.bytes / most_rows;
    must(mla_bind(s.plan, &s.placed.buffers, &s.binding, &err), &err);
    return s;
}

static void stage_close(stage *s)
{
    mla_unbind(&s->binding);
    mla_plan_release(&s->plan);
    assert_int_equal(placed_drop(&s->placed), 0);
    attend_case_drop(s->c);
}

static void run(stage *s, const mla_batch *batch)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    placed_blank(&s->placed);
    must(mla_run(s->binding, batch, (mla_stream){NULL}, &err), &err);
    placed_fetch(&s->placed);
}

static void fail_case(const stage *s, int number, const char *what)
{
    char line[256];
    mla_plan_describe(s->plan, line, sizeof line, NULL);
    fail_msg("case %d: %s: %s", number, what, line);
}

/* Writes the start of an input, in place. */
static void put(mla_in in, const void *from, size_t bytes)
{
    if (rig_is_on_gpu) {
        memory_to(in.data, from, bytes);
    } else {
        memcpy((void *)(uintptr_t)in.data, from, bytes);
    }
}

static unsigned char *copy_of(const void *from, size_t bytes)
{
    unsigned char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy, from, bytes);
    return copy;
}

/* Inputs of all requests and what they gave. */
typedef struct kept_case {
    unsigned char *query, *table, *out, *lse;
} kept_case;

static kept_case keep(const stage *s)
{
    const attend_case *c = s->c;
    return (kept_case){copy_of(c->query.data, c->query.bytes),
                       copy_of(c->table.data, c->table.bytes),
                       copy_of(s->placed.out.data, s->placed.out.bytes),
                       copy_of(s->placed.lse.data, s->placed.lse.bytes)};
}

static void forget(kept_case *k)
{
    free(k->query);
    free(k->table);
    free(k->out);
    free(k->lse);
}

/* Request r becomes the only one. */
static mla_batch put_alone(const stage *s, const kept_case *k, int32_t r, size_t first)
{
    const attend_case *c = s->c;
    const mla_buffers *to = &s->placed.buffers;
    size_t width = (size_t)c->caps.table_width * sizeof(int32_t);
    const int32_t starts[] = {0, c->rows[r]};
    mla_batch batch = c->batch;
    batch.num_requests = 1;
    batch.num_query_rows = c->rows[r];
    put(to->block_table, k->table + (size_t)r * width, width);
    put(to->context_lens, &c->lens[r], sizeof c->lens[r]);
    put(to->query_starts, starts, sizeof starts);
    if (c->rows[r] > 0) {
        put(to->query, k->query + first * s->query_row_bytes,
            (size_t)c->rows[r] * s->query_row_bytes);
    }
    return batch;
}

/* What each request gave is what it gives as the only one, under the same plan. */
static void expect_all_same_alone(stage *s, int number)
{
    kept_case k = keep(s);
    size_t first = 0;
    for (int32_t r = 0; r < s->c->num_requests; r++) {
        size_t rows = (size_t)s->c->rows[r];
        mla_batch batch = put_alone(s, &k, r, first);
        run(s, &batch);
        if (memcmp(s->placed.out.data, k.out + first * s->output_row_bytes,
                   rows * s->output_row_bytes) != 0 ||
            memcmp(s->placed.lse.data, k.lse + first * s->lse_row_bytes,
                   rows * s->lse_row_bytes) != 0) {
            fail_case(s, number, "a request alone differs");
        }
        first += rows;
    }
    forget(&k);
}

/* The splits of one row and head. */
typedef struct partials {
    const float *out; /* [max_splits][D] */
    const float *lse; /* [max_splits]; NaN where nothing was written */
    int32_t max_splits, dim;
} partials;

/* In double precision. Returns how many splits there are. */
static int32_t merge(const partials *of, double *out, double *magnitude)
{
    double most = -HUGE_VAL;
    double total = 0;
    int32_t num = 0;
    for (int32_t k = 0; k < of->max_splits; k++) {
        num += isfinite(of->lse[k]);
        most = isfinite(of->lse[k]) ? fmax(most, (double)of->lse[k]) : most;
    }
    memset(out, 0, (size_t)of->dim * sizeof *out);
    memset(magnitude, 0, (size_t)of->dim * sizeof *magnitude);
    for (int32_t k = 0; k < of->max_splits; k++) {
        double weight = isfinite(of->lse[k]) ? exp((double)of->lse[k] - most) : 0;
        total += weight;
        for (int32_t d = 0; d < of->dim && weight > 0; d++) {
            double value =
                weight * (double)of->out[(size_t)k * (size_t)of->dim + (size_t)d];
            out[d] += value;
            magnitude[d] += fabs(value);
        }
    }
    for (int32_t d = 0; d < of->dim && num > 0; d++) {
        out[d] /= total;
        magnitude[d] /= total;
    }
    return num;
}

enum { MOST_DIM = 1024 };

/* Returns how many rows have more than one split. */
static int64_t expect_merged(const stage *s, int number)
{
    static double want[MOST_DIM];
    static double magnitude[MOST_DIM];
    const mlai_cuda_shape *shape = &s->plan->launcher->shape;
    const attend_case *c = s->c;
    size_t max_splits = (size_t)shape->split.max_splits;
    size_t dim = (size_t)c->caps.latent_dim;
    double rounding = c->caps.output_dtype == MLA_F32 ? 0x1p-24 : 0x1p-8;
    unsigned char *work = malloc(s->placed.workspace.bytes);
    float *got = attend_case_out_as_f32(c, s->placed.out.data);
    int64_t num_merged = 0;
    assert_non_null(work);
    memory_from(work, s->placed.buffers.workspace.data, s->placed.workspace.bytes);
    for (int64_t q = 0; q < c->num_queries; q++) {
        partials of = {(const float *)(const void *)work + (size_t)q * max_splits * dim,
                       (const float *)(const void *)(work + shape->partial_lse_offset) +
                           (size_t)q * max_splits,
                       (int32_t)max_splits, (int32_t)dim};
        if (merge(&of, want, magnitude) < 2) {
            continue;
        }
        num_merged++;
        for (size_t d = 0; d < dim; d++) {
            double error = fabs((double)got[(size_t)q * dim + d] - want[d]);
            if (!(error <= 1e-5 * magnitude[d] + 1.01 * rounding * fabs(want[d]) + 1e-30)) {
                fail_case(s, number, "the output is not its partial results merged");
            }
        }
    }
    free(work);
    free(got);
    return num_merged;
}

static void check_case(attend_case *c, mla_context *context, int number, double *worst,
                       int64_t *num_merged)
{
    stage s = stage_open(c, context);
    run(&s, &c->batch);
    attend_verdict verdict = placed_judge(&s.placed, c);
    *worst = fmax(*worst, verdict.worst_share);
    if (verdict.num_wrong > 0) {
        fail_case(&s, number, verdict.first_wrong);
    }
    if (rig_backend == MLA_BACKEND_CUDA && s.plan->launcher->shape.has_merge) {
        *num_merged += expect_merged(&s, number);
    }
    expect_all_same_alone(&s, number);
    stage_close(&s);
}

static void warm(uint64_t seed, int num)
{
    mla_caps *caps = calloc((size_t)num, sizeof *caps);
    assert_non_null(caps);
    for (int i = 0; i < num && rig_is_on_gpu; i++) {
        attend_case c;
        gpu_case_shape(&c, seed, i);
        caps[i] = c.caps;
    }
    gpu_warm(caps, num);
    free(caps);
}

static void drawn_cases_agree_with_the_oracle_and_with_themselves_alone(void **state)
{
    (void)state;
    rng random = rng_start("drawn_cases_agree_with_the_oracle_and_with_themselves_alone");
    uint64_t seed = rng_u64(&random);
    double worst = 0;
    int64_t num_merged = 0;
    int num = test_cases(NUM_CASES);
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_context *context = rig_context(2, NULL);
    warm(seed, num);
    for (int i = 0; i < num; i++) {
        attend_case c;
        gpu_case_draw(&c, seed, i);
        check_case(&c, context, i, &worst, &num_merged);
    }
    must(mla_context_destroy(&context, &err), &err);
    print_message("%d cases, at most %.3f of the bound; %lld rows merged from splits\n",
                  num, worst, (long long)num_merged);
    assert_true(rig_backend != MLA_BACKEND_CUDA || num < NUM_CASES || num_merged > 0);
}

enum { APPENDED = 37, PAGES = 5, PAGE = 16, LATENT = 512, ROPE = 64, WIDTH = 576 };
static const size_t num_values = (size_t)APPENDED * WIDTH;
static const size_t num_slots = (size_t)PAGES * PAGE;

static mla_caps append_caps(mla_kv_format format)
{
    mla_caps caps = rig_caps();
    caps.kv_format = format;
    caps.latent_dim = LATENT;
    caps.rope_dim = ROPE;
    caps.page_tokens = PAGE;
    caps.table_width = PAGES;
    caps.max_context_tokens = (int64_t)PAGES * PAGE;
    caps.num_pages = PAGES;
    return caps;
}

/* Rows to append, and the pool that they make of one full of 0xff. */
typedef struct appended {
    float *values;    /* [APPENDED][WIDTH], exactly bf16 where `halves` are appended */
    uint16_t *halves; /* [APPENDED][WIDTH] */
    int64_t slots[APPENDED];
    unsigned char *pool; /* [PAGES * PAGE] rows */
    size_t pool_bytes;
    bool is_scaled;
} appended;

static const float append_scale = 0.0371F;

static appended draw_rows(mla_kv_format format, bool is_f32, rng *random)
{
    size_t row_bytes = mla_kv_row_bytes(format, LATENT, ROPE);
    appended a = {.values = malloc(num_values * sizeof(float)),
                  .halves = malloc(num_values * sizeof(uint16_t)),
                  .pool = malloc(num_slots * row_bytes),
                  .pool_bytes = num_slots * row_bytes,
                  .is_scaled = format == MLA_KV_FP8};
    assert_true(a.values && a.halves && a.pool);
    memset(a.pool, ALL_ONES, a.pool_bytes);
    for (int i = 0; i < (int)num_values; i++) {
        float any = rng_between(random, 0, 9) ? 3 * (float)rng_normal(random)
                                              : rng_f32_of_bits(random);
        float value = i / WIDTH == 5 ? 0 : any;
        a.halves[i] = mlai_bf16_from_f32(value);
        a.values[i] = is_f32 ? value : mlai_f32_from_bf16(a.halves[i]);
    }
    for (int i = 0; i < APPENDED; i++) {
        const int64_t none[] = {-1, (int64_t)num_slots, INT64_MAX, INT64_MIN};
        a.slots[i] = i % 7 == 3 ? none[i / 7 % 4] : 2 * (int64_t)i;
        if (i % 7 != 3) {
            mlai_row_encode(format, LATENT, ROPE, a.values + (size_t)i * WIDTH,
                            append_scale, a.pool + (size_t)a.slots[i] * row_bytes);
        }
    }
    return a;
}

static void drop_rows(appended *a)
{
    free(a->values);
    free(a->halves);
    free(a->pool);
}

/* A pool full of 0xff, whose neighbours nobody may write. */
typedef struct fenced_pool {
    fenced host;
    walled device; /* on a GPU */
} fenced_pool;

static fenced_pool take_pool(size_t bytes)
{
    fenced_pool pool = {.host = fenced_take(bytes, ALL_ONES)};
    if (rig_is_on_gpu) {
        pool.device = walled_take(bytes, NULL);
    }
    return pool;
}

/* To `host`; then it may be looked at until it is dropped. */
static void fetch_pool(fenced_pool *pool)
{
    if (rig_is_on_gpu) {
        memory_wait();
        memory_from(pool->host.data, pool->device.data, pool->host.bytes);
        assert_int_equal(walled_drop(&pool->device), 0);
    }
}

static void append(mla_plan *plan, const appended *a, bool is_f32, fenced_pool *pool)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_append_args args = MLA_INIT(mla_append_args);
    mla_in scale = rig_lend(&append_scale, sizeof append_scale);
    args.rows = is_f32 ? rig_lend(a->values, num_values * sizeof(float))
                       : rig_lend(a->halves, num_values * sizeof(uint16_t));
    args.slots = rig_lend(a->slots, sizeof a->slots);
    args.kv_scale = a->is_scaled ? scale : (mla_in){NULL, 0};
    args.kv_pool =
        (mla_out){rig_is_on_gpu ? pool->device.data : pool->host.data, pool->host.bytes};
    args.num_rows = APPENDED;
    args.rows_dtype = is_f32 ? MLA_F32 : MLA_BF16;
    must(mla_append(plan, &args, (mla_stream){NULL}, &err), &err);
    fetch_pool(pool);
    rig_lend_end(args.rows);
    rig_lend_end(args.slots);
    rig_lend_end(scale);
}

static void expect_appended(mla_kv_format format, bool is_f32, rng *random)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_caps caps = append_caps(format);
    appended a = draw_rows(format, is_f32, random);
    mla_context *context = rig_context(1, NULL);
    mla_plan *plan = rig_plan(context, &caps);
    fenced_pool pool = take_pool(a.pool_bytes);
    append(plan, &a, is_f32, &pool);
    assert_memory_equal(pool.host.data, a.pool, a.pool_bytes);
    mla_plan_release(&plan);
    must(mla_context_destroy(&context, &err), &err);
    fenced_drop(&pool.host);
    drop_rows(&a);
}

static void append_writes_the_layouts_bytes_and_no_others(void **state)
{
    (void)state;
    rng random = rng_start("append_writes_the_layouts_bytes_and_no_others");
    for (int format = MLA_KV_BF16; format <= MLA_KV_FP8_G128; format++) {
        expect_appended((mla_kv_format)format, true, &random);
        expect_appended((mla_kv_format)format, false, &random);
    }
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_writes_the_layouts_bytes_and_no_others),
        cmocka_unit_test(drawn_cases_agree_with_the_oracle_and_with_themselves_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_suite("drawn", run_suite);
}
