/* check.c - the CUDA kernels on a GPU against the oracle, between red zones:
 *
 *   gpu_kernels compile FOLDER ARCHITECTURE   leaves the cubins that `check` will want
 *   gpu_kernels check FOLDER [CASES [SEED]]
 *   gpu_kernels bench FOLDER [NAME]           see bench.c */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/row_layout.h"
#include "base/convert.h"
#include "bench.h"
#include "driver.h"
#include "support/cuda_cases.h"

enum { ZONE = 4096, ZONE_BYTE = 0xcd, ALL_ONES = 0xff, NUM_THREADS = 12 };

/* Device memory between two zones that must stay as they are. */
typedef struct walled {
    gpu_pointer all, data;
    size_t bytes;
} walled;

static walled walled_take(size_t bytes, const void *from)
{
    walled w = {.bytes = bytes};
    size_t room = (bytes + 255) / 256 * 256;
    w.all = gpu_take(room + 2 * (size_t)ZONE);
    gpu_fill(w.all, ZONE_BYTE, room + 2 * (size_t)ZONE);
    w.data = w.all + ZONE;
    if (from) {
        gpu_to(w.data, from, bytes);
    } else {
        gpu_fill(w.data, ALL_ONES, bytes);
    }
    return w;
}

static int64_t walled_drop(walled *w)
{
    size_t room = (w->bytes + 255) / 256 * 256;
    size_t behind = room - w->bytes + ZONE;
    unsigned char *zone = malloc(behind);
    int64_t num_bad = 0;
    gpu_from(zone, w->all, ZONE);
    for (size_t i = 0; i < ZONE; i++) {
        num_bad += zone[i] != ZONE_BYTE;
    }
    gpu_from(zone, w->data + w->bytes, behind);
    for (size_t i = 0; i < behind; i++) {
        num_bad += zone[i] != ZONE_BYTE;
    }
    free(zone);
    gpu_give(w->all);
    return num_bad;
}

typedef struct device_case {
    walled pool, query, table, lengths, starts, kv_scale, query_scale, out, lse, workspace;
    mlai_geometry geometry;
    mlai_cuda_shape shape;
    mla_buffers buffers;
} device_case;

static const void *at(const walled *w)
{
    const void *p;
    memcpy(&p, &w->data, sizeof p);
    return p;
}

static void plan_of(const attend_case *c, device_case *d)
{
    mla_error error = {0};
    mlai_cuda_device device = gpu_device();
    if (mlai_geometry_of(&c->caps, &d->geometry, &error) != MLA_OK ||
        mlai_cuda_shape_of(&d->geometry, &device, &d->shape, &error) != MLA_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(2);
    }
}

static device_case upload(const attend_case *c)
{
    device_case d = {0};
    plan_of(c, &d);
    size_t rows = (size_t)c->caps.max_query_rows;
    d.pool = walled_take(c->pool.bytes, c->pool.data);
    d.query = walled_take(c->query.bytes ? c->query.bytes : 16,
                          c->query.bytes ? c->query.data : NULL);
    d.table = walled_take(c->table.bytes, c->table.data);
    d.lengths = walled_take(c->lengths.bytes, c->lengths.data);
    d.starts = walled_take(c->starts.bytes, c->starts.data);
    d.kv_scale = walled_take(4, c->kv_scale.data);
    d.query_scale = walled_take(4, c->query_scale.data);
    d.out = walled_take(rows * d.geometry.output_row_bytes, NULL);
    d.lse = walled_take(rows * d.geometry.lse_row_bytes, NULL);
    d.workspace = walled_take(d.shape.workspace_bytes, NULL);
    d.buffers = (mla_buffers){
        .kv_pool.data = at(&d.pool),
        .query.data = at(&d.query),
        .block_table.data = at(&d.table),
        .context_lens.data = at(&d.lengths),
        .query_starts.data = at(&d.starts),
        .kv_scale.data = c->caps.kv_format == MLA_KV_FP8 ? at(&d.kv_scale) : NULL,
        .query_scale.data = c->caps.query_dtype == MLA_E4M3 ? at(&d.query_scale) : NULL,
        .output.data = (void *)(uintptr_t)d.out.data,
        .lse.data = (void *)(uintptr_t)d.lse.data,
        .workspace.data = (void *)(uintptr_t)d.workspace.data,
    };
    gpu_wait();
    return d;
}

static int64_t drop(device_case *d)
{
    walled *all[] = {&d->pool,     &d->query,       &d->table, &d->lengths, &d->starts,
                     &d->kv_scale, &d->query_scale, &d->out,   &d->lse,     &d->workspace};
    int64_t num_bad = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        num_bad += walled_drop(all[i]);
    }
    return num_bad;
}

static void run(device_case *d, const mla_batch *batch, const char *folder)
{
    struct mlai_cuda_attend_params params =
        mlai_cuda_attend_params_of(&d->shape, &d->geometry, &d->buffers, batch);
    gpu_launch(gpu_program(&d->shape, d->shape.attend, folder),
               mlai_cuda_attend_grid(&d->shape, &d->geometry, batch), &params, 0);
    if (d->shape.has_merge) {
        gpu_launch(gpu_program(&d->shape, MLAI_CUDA_MERGE, folder),
                   mlai_cuda_merge_grid(&d->shape, &d->geometry, batch), &params, 1);
    }
    gpu_wait();
}

/* The output as f32, and what is stored of it. */
typedef struct answer {
    float *out, *lse;
    unsigned char *stored;
    size_t stored_bytes;
} answer;

static answer fetch(const device_case *d, const attend_case *c)
{
    size_t num = (size_t)c->num_queries * (size_t)c->caps.latent_dim;
    size_t item = mlai_dtype_bytes(c->caps.output_dtype);
    answer a = {.out = malloc(4 * num + 1),
                .lse = malloc(4 * (size_t)c->num_queries + 1),
                .stored = malloc(item * num + 1),
                .stored_bytes = item * num};
    gpu_from(a.stored, d->out.data, item * num);
    gpu_from(a.lse, d->lse.data, 4 * (size_t)c->num_queries);
    for (size_t i = 0; i < num; i++) {
        uint16_t half;
        if (c->caps.output_dtype == MLA_F32) {
            memcpy(&a.out[i], a.stored + 4 * i, 4);
        } else {
            memcpy(&half, a.stored + 2 * i, 2);
            a.out[i] = mlai_f32_from_bf16(half);
        }
    }
    return a;
}

static void forget(answer *a)
{
    free(a->out);
    free(a->lse);
    free(a->stored);
}

static void describe(const attend_case *c, const device_case *d)
{
    printf("  %s d%d+%d h%d p%d %s q%d o%d causal%d window%d stride%lld bad%d dev%g "
           "splits<=%d:",
           mlai_cuda_program_of(d->shape.attend)->name, c->caps.latent_dim,
           c->caps.rope_dim, c->caps.num_heads, c->caps.page_tokens,
           mlai_kv_format_name(c->caps.kv_format), (int)c->caps.query_dtype,
           (int)c->caps.output_dtype, c->caps.causal, c->caps.window,
           (long long)c->caps.page_stride_bytes, c->has_bad_pages, c->logit_deviation,
           d->shape.split.max_splits);
    for (int32_t r = 0; r < c->num_requests; r++) {
        printf(" %dx%d", c->rows[r], c->lens[r]);
    }
    printf("\n");
}

/* Request r by itself, under the same plan, gives the bits that it gave among the others. */
static int64_t differs_alone(device_case *d, const attend_case *c, const answer *all,
                             const char *folder)
{
    int64_t num_different = 0;
    size_t item = mlai_dtype_bytes(c->caps.output_dtype);
    size_t row_bytes = (size_t)c->caps.num_heads * (size_t)c->caps.latent_dim * item;
    const int32_t *starts = (const int32_t *)(const void *)c->starts.data;
    mla_buffers kept = d->buffers;
    for (int32_t r = 0; r < c->num_requests; r++) {
        int32_t alone[2] = {0, c->rows[r]};
        gpu_to(d->starts.data, alone, sizeof alone);
        gpu_fill(d->out.data, ALL_ONES, d->out.bytes);
        gpu_fill(d->workspace.data, ALL_ONES, d->workspace.bytes);
        d->buffers.block_table.data = (const char *)kept.block_table.data +
                                      (size_t)r * (size_t)c->caps.table_width * 4;
        d->buffers.context_lens.data = (const char *)kept.context_lens.data + 4 * (size_t)r;
        d->buffers.query.data =
            (const char *)kept.query.data + (size_t)starts[r] * d->geometry.query_row_bytes;
        mla_batch batch = c->batch;
        batch.num_requests = 1;
        batch.num_query_rows = c->rows[r];
        run(d, &batch, folder);
        answer one = fetch(d, c);
        num_different += memcmp(one.stored, all->stored + (size_t)starts[r] * row_bytes,
                                (size_t)c->rows[r] * row_bytes) != 0;
        num_different +=
            memcmp(one.lse, all->lse + (size_t)starts[r] * (size_t)c->caps.num_heads,
                   (size_t)c->rows[r] * (size_t)c->caps.num_heads * 4) != 0;
        forget(&one);
    }
    d->buffers = kept;
    return num_different;
}

static int check_case(const attend_case *c, int index, const char *folder, double *worst)
{
    device_case d = upload(c);
    run(&d, &c->batch, folder);
    answer a = fetch(&d, c);
    gpu_verdict v = gpu_case_judge(c, a.out, a.lse);
    int64_t num_different = differs_alone(&d, c, &a, folder);
    int64_t num_trespasses = 0;
    double *mine = &worst[d.shape.attend];
    *mine = v.worst_share > *mine ? v.worst_share : *mine;
    bool is_wrong = v.num_wrong > 0 || num_different > 0;
    forget(&a);
    device_case kept = d;
    num_trespasses = drop(&d);
    is_wrong |= num_trespasses > 0;
    if (is_wrong) {
        printf("FAILED case %d: %lld wrong (%s), %lld differ alone, %lld trespasses\n",
               index, (long long)v.num_wrong, v.first_wrong, (long long)num_different,
               (long long)num_trespasses);
        describe(c, &kept);
    }
    return is_wrong;
}

typedef struct builder {
    attend_case *cases;
    int num, first;
    uint64_t seed;
} builder;

static void *build(void *of)
{
    builder *b = of;
    for (int i = b->first; i < b->num; i += NUM_THREADS) {
        gpu_case_draw(&b->cases[i], b->seed, i);
    }
    return NULL;
}

static attend_case *draw_cases(int num, uint64_t seed)
{
    attend_case *cases = calloc((size_t)num, sizeof *cases);
    builder each[NUM_THREADS];
    pthread_t thread[NUM_THREADS];
    for (int i = 0; i < NUM_THREADS; i++) {
        each[i] = (builder){cases, num, i, seed};
        if (pthread_create(&thread[i], NULL, build, &each[i]) != 0) {
            exit(2);
        }
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    return cases;
}

static int check_append(mla_kv_format format, bool from_f32, const char *folder)
{
    enum { ROWS = 37, PAGES = 5, PAGE = 16 };
    rng r = rng_of_seed(77U + (uint64_t)format);
    attend_case c = {0};
    c.caps = (mla_caps){.struct_size = sizeof(mla_caps),
                        .mode = MLA_DECODE,
                        .kv_format = format,
                        .query_dtype = MLA_BF16,
                        .output_dtype = MLA_BF16,
                        .num_heads = 1,
                        .latent_dim = 512,
                        .rope_dim = 64,
                        .page_tokens = PAGE,
                        .softmax_scale = 1,
                        .max_requests = 1,
                        .max_query_rows = 1,
                        .max_rows_per_request = 1,
                        .table_width = PAGES,
                        .max_context_tokens = PAGES * PAGE,
                        .num_pages = PAGES};
    device_case d = {0};
    plan_of(&c, &d);
    size_t width = 576;
    float *values = malloc(ROWS * width * 4);
    uint16_t *halves = malloc(ROWS * width * 2);
    int64_t slots[ROWS];
    for (size_t i = 0; i < ROWS * width; i++) {
        float v = rng_between(&r, 0, 9) ? (float)rng_normal(&r) * 3 : rng_f32_of_bits(&r);
        v = i / width == 5 ? 0 : v;
        halves[i] = mlai_bf16_from_f32(v);
        values[i] = from_f32 ? v : mlai_f32_from_bf16(halves[i]);
    }
    size_t pool_bytes = PAGES * d.geometry.page_stride_bytes;
    unsigned char *expected = malloc(pool_bytes);
    unsigned char *got = malloc(pool_bytes);
    memset(expected, ALL_ONES, pool_bytes);
    float scale = 0.0371F;
    for (int i = 0; i < ROWS; i++) {
        slots[i] = i % 7 == 3 ? (i % 2 ? -1 : PAGES * PAGE) : 2 * i;
        if (slots[i] >= 0 && slots[i] < PAGES * PAGE) {
            mlai_row_encode(format, 512, 64, values + (size_t)i * width, scale,
                            expected +
                                (size_t)slots[i] / PAGE * d.geometry.page_stride_bytes +
                                (size_t)slots[i] % PAGE * d.geometry.row_bytes);
        }
    }
    walled pool = walled_take(pool_bytes, NULL);
    walled rows = walled_take(ROWS * width * (from_f32 ? 4 : 2),
                              from_f32 ? (void *)values : (void *)halves);
    walled where = walled_take(sizeof slots, slots);
    walled scales = walled_take(4, &scale);
    gpu_wait();
    mla_append_args args = {.rows.data = at(&rows),
                            .slots.data = at(&where),
                            .kv_scale.data = format == MLA_KV_FP8 ? at(&scales) : NULL,
                            .kv_pool.data = (void *)(uintptr_t)pool.data,
                            .num_rows = ROWS,
                            .rows_dtype = from_f32 ? MLA_F32 : MLA_BF16};
    struct mlai_cuda_append_params params = mlai_cuda_append_params_of(&d.geometry, &args);
    gpu_launch(gpu_program(&d.shape, d.shape.append, folder), mlai_cuda_append_grid(&args),
               &params, 0);
    gpu_wait();
    gpu_from(got, pool.data, pool_bytes);
    int64_t num_wrong = 0;
    for (size_t i = 0; i < pool_bytes; i++) {
        num_wrong += got[i] != expected[i];
    }
    num_wrong += walled_drop(&pool) + walled_drop(&rows) + walled_drop(&where) +
                 walled_drop(&scales);
    printf("append %s from %s: %lld wrong bytes\n", mlai_kv_format_name(format),
           from_f32 ? "f32" : "bf16", (long long)num_wrong);
    free(values);
    free(halves);
    free(expected);
    free(got);
    return num_wrong != 0;
}

static int check(const char *folder, int num, uint64_t seed)
{
    gpu_open();
    int num_failed = 0;
    double worst[MLAI_CUDA_NUM_PROGRAMS] = {0};
    for (int format = MLA_KV_BF16; format <= MLA_KV_FP8_G128; format++) {
        num_failed += check_append((mla_kv_format)format, true, folder);
        num_failed += check_append((mla_kv_format)format, false, folder);
    }
    attend_case *cases = draw_cases(num, seed);
    for (int i = 0; i < num; i++) {
        num_failed += check_case(&cases[i], i, folder, worst);
    }
    for (int i = 0; i < MLAI_CUDA_NUM_PROGRAMS; i++) {
        if (worst[i] > 0) {
            printf("%s: worst error %.2f of the bound\n",
                   mlai_cuda_program_of((mlai_cuda_program)i)->name, worst[i]);
        }
    }
    printf("%d cases of seed %" PRIu64 ", %d failed\n", num, seed, num_failed);
    return num_failed > 0;
}

static void compile(const char *folder, const char *architecture, int num, uint64_t seed)
{
    mlai_cuda_device device = {9, 0, 132, 233472, 232448};
    for (int i = 0; i < num; i++) {
        attend_case c;
        gpu_case_draw(&c, seed, i);
        device_case d = {0};
        mla_error error = {0};
        if (mlai_geometry_of(&c.caps, &d.geometry, &error) != MLA_OK ||
            mlai_cuda_shape_of(&d.geometry, &device, &d.shape, &error) != MLA_OK) {
            (void)fprintf(stderr, "%s\n", error.message);
            exit(2);
        }
        gpu_compile(&d.shape, d.shape.attend, architecture, folder);
        gpu_compile(&d.shape, d.shape.append, architecture, folder);
        gpu_compile(&d.shape, MLAI_CUDA_MERGE, architecture, folder);
        attend_case_drop(&c);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    int num = argc > 3 && strcmp(mode, "check") == 0 ? atoi(argv[3]) : 120;
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
    if (strcmp(mode, "compile") == 0 && argc > 3) {
        compile(argv[2], argv[3], num, seed);
        gpu_bench_compile(argv[2], argv[3]);
        return 0;
    }
    if (strcmp(mode, "check") == 0) {
        return check(argv[2], num, seed);
    }
    if (strcmp(mode, "bench") == 0) {
        return gpu_bench(argv[2], argc > 3 ? argv[3] : "");
    }
    (void)fprintf(stderr, "usage: gpu_kernels compile|check|bench FOLDER ...\n");
    return 2;
}
