/* bench.c - see bench.h. Medians of graph replays by events around each; page tables rotate so
 * that at least 600 MB of KV passes between two replays that read the same; one head of one
 * row is checked against double. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/oracle.h"
#include "attention/row_layout.h"
#include "base/convert.h"
#include "driver.h"
#include "support/random.h"

enum { LATENT = 512, ROPE = 64, PAGE = 64, MIX = -1, BLOCK_PAGES = 1024, MAX_TURNS = 160 };
#define ROTATED_BYTES 600e6

typedef struct bench_row {
    const char *name;
    int32_t heads, rows, requests, length;
    float triton_bf16_us, triton_fp8_us;
} bench_row;

static const bench_row table[] = {
    {"h128 q1 b128 L4096", 128, 1, 128, 4096, 753.6F, 849.1F},
    {"h128 q2 b128 L4096", 128, 2, 128, 4096, 1435.0F, 1661.5F},
    {"h128 q1 b128 L8192", 128, 1, 128, 8192, 1438.0F, 1608.9F},
    {"h128 q2 b128 L8192", 128, 2, 128, 8192, 2723.1F, 3172.2F},
    {"h128 q1 b128 L16384", 128, 1, 128, 16384, 2777.8F, 3126.7F},
    {"h128 q2 b128 L16384", 128, 2, 128, 16384, 5292.7F, 6175.8F},
    {"h16 q1 b1 L4096", 16, 1, 1, 4096, 23.0F, 24.5F},
    {"h16 q1 b1 L32768", 16, 1, 1, 32768, 62.2F, 62.7F},
    {"h16 q1 b1 L131072", 16, 1, 1, 131072, 129.3F, 130.1F},
    {"h16 q1 b8 L8192", 16, 1, 8, 8192, 56.7F, 56.6F},
    {"h16 q1 b8 L131072", 16, 1, 8, 131072, 640.3F, 624.4F},
    {"h16 q1 b32 L8192", 16, 1, 32, 8192, 172.5F, 165.4F},
    {"h16 q1 b32 L32768", 16, 1, 32, 32768, 631.8F, 624.2F},
    {"h16 q1 b128 L8192", 16, 1, 128, 8192, 629.3F, 625.4F},
    {"h16 q1 b128 L32768", 16, 1, 128, 32768, 2444.7F, 2426.3F},
    {"h128 q1 b1 L4096", 128, 1, 1, 4096, 33.3F, 35.1F},
    {"h128 q1 b1 L32768", 128, 1, 1, 32768, 89.7F, 94.2F},
    {"h128 q1 b1 L131072", 128, 1, 1, 131072, 215.8F, 240.6F},
    {"h128 q1 b8 L8192", 128, 1, 8, 8192, 119.1F, 130.1F},
    {"h128 q1 b8 L131072", 128, 1, 8, 131072, 1332.6F, 1548.9F},
    {"h128 q1 b32 L8192", 128, 1, 32, 8192, 374.2F, 416.8F},
    {"h128 q1 b32 L32768", 128, 1, 32, 32768, 1358.0F, 1559.3F},
    {"h16 q2 b32 L8192", 16, 2, 32, 8192, 311.5F, 314.1F},
    {"h16 q8 b32 L8192", 16, 8, 32, 8192, 1164.2F, 1197.8F},
    {"h128 q8 b1 L8192", 128, 8, 1, 8192, 115.2F, 168.5F},
    {"h128 q8 b8 L32768", 128, 8, 8, 32768, 2604.3F, 3035.0F},
    {"h64 q1 b1 L32768", 64, 1, 1, 32768, 87.9F, 89.3F},
    {"h64 q1 b32 L8192", 64, 1, 32, 8192, 212.2F, 229.2F},
    {"h64 q1 b128 L8192", 64, 1, 128, 8192, 730.4F, 820.2F},
    {"h64 q2 b32 L32768", 64, 2, 32, 32768, 1331.7F, 1554.4F},
    {"h32 q1 b1 L32768", 32, 1, 1, 32768, 79.1F, 80.2F},
    {"h32 q1 b32 L8192", 32, 1, 32, 8192, 215.6F, 311.8F},
    {"h32 q1 b128 L8192", 32, 1, 128, 8192, 759.0F, 1216.0F},
    {"h32 q2 b128 L8192", 32, 2, 128, 8192, 1427.8F, 2438.2F},
    {"h16 q1 b64 Lmix", 16, 1, 64, MIX, 1052.0F, 1062.7F},
    {"h128 q1 b64 Lmix", 128, 1, 64, MIX, 1704.9F, 1933.7F},
    {"h16 q1 b32 L8192w", 16, 1, 32, 8192, 171.5F, 165.6F},
    {"h16 q1 b8 L4096", 16, 1, 8, 4096, 33.7F, 33.9F},
    {"h16 q1 b128 L131072", 16, 1, 128, 131072, 9655.9F, 9592.2F},
    {"h128 q1 b128 L32768", 128, 1, 128, 32768, 5473.4F, 6194.6F},
    {"h128 q8 b32 L8192", 128, 8, 32, 8192, 2709.2F, 3132.5F},
    {"h16 q1 b32 L131072", 16, 1, 32, 131072, 2444.5F, 2413.4F},
};
enum { NUM_ROWS = sizeof table / sizeof table[0] };

/* What the other lengths' list is made of; the values of peers' measurements. */
static const int32_t mixed[64] = {
    55691, 4344, 530,   42548, 48809, 8632,  13316, 769,   21106, 1615,  594,
    23516, 2745, 10535, 10160, 1052,  1244,  891,   549,   5431,  55273, 700,
    7070,  4909, 9477,  788,   8498,  1893,  7617,  11685, 5283,  2869,  1715,
    47466, 4620, 6705,  562,   6024,  526,   1028,  5077,  3194,  665,   8857,
    1134,  7650, 1030,  48347, 21571, 53177, 1015,  2253,  620,   1961,  25630,
    1210,  1083, 52609, 1083,  29271, 624,   3334,  2792,  2687};

static int32_t length_of(const bench_row *row, int32_t request)
{
    return row->length == MIX ? mixed[request] : row->length;
}

static int32_t longest(const bench_row *row)
{
    int32_t most = 0;
    for (int32_t r = 0; r < row->requests; r++) {
        most = length_of(row, r) > most ? length_of(row, r) : most;
    }
    return most;
}

typedef struct bench_plan {
    mlai_geometry geometry;
    mlai_cuda_shape shape;
    int64_t pages_of_turn; /* pages that one turn reads */
    int64_t num_pages;
    int32_t num_turns;
} bench_plan;

static void try_another_rule(bench_plan *plan)
{
    const char *text = getenv("MLA_SPLIT");
    int least;
    int most;
    int waves;
    if (!text || sscanf(text, "%d:%d:%d", &least, &most, &waves) != 3) {
        return;
    }
    mlai_cuda_shape *shape = &plan->shape;
    const mla_caps *caps = &plan->geometry.caps;
    int64_t rows = (int64_t)caps->num_heads * caps->max_rows_per_request;
    int64_t tiles = caps->max_requests * ((rows + shape->tile_rows - 1) / shape->tile_rows);
    int64_t splits = waves * (int64_t)shape->num_slots / tiles;
    int64_t useful = (caps->max_context_tokens + least - 1) / least;
    splits = splits < 1 ? 1 : splits > useful ? useful : splits;
    shape->split.min_tokens = least;
    shape->split.max_tokens = most;
    shape->split.max_splits = (int)splits;
    shape->has_merge = splits > 1;
    size_t slots = (size_t)caps->max_query_rows * (size_t)caps->num_heads * (size_t)splits;
    shape->partial_lse_offset = slots * 4 * LATENT;
    shape->workspace_bytes = slots * 4 * (LATENT + 1);
}

static bench_plan plan_of(const bench_row *row, mla_kv_format format,
                          const mlai_cuda_device *device)
{
    bench_plan plan = {0};
    mla_error error = {0};
    int32_t most = longest(row);
    for (int32_t r = 0; r < row->requests; r++) {
        plan.pages_of_turn += (length_of(row, r) + PAGE - 1) / PAGE;
    }
    double bytes =
        (double)plan.pages_of_turn * PAGE * (double)mla_kv_row_bytes(format, LATENT, ROPE);
    plan.num_turns = (int32_t)fmin(ceil(ROTATED_BYTES / bytes), MAX_TURNS);
    plan.num_pages = plan.pages_of_turn * plan.num_turns;
    if (strchr(row->name, 'w')) {
        plan.num_pages = 262144;
    }
    mla_caps caps = {
        .struct_size = sizeof caps,
        .mode = row->rows > 1 ? MLA_VERIFY : MLA_DECODE,
        .kv_format = format,
        .query_dtype = MLA_BF16,
        .output_dtype = MLA_BF16,
        .num_heads = row->heads,
        .latent_dim = LATENT,
        .rope_dim = ROPE,
        .page_tokens = PAGE,
        .causal = 1,
        .softmax_scale = 0.0721688F,
        .max_requests = row->requests,
        .max_query_rows = row->requests * row->rows,
        .max_rows_per_request = row->rows,
        .table_width = (most + PAGE - 1) / PAGE,
        .max_context_tokens = most,
        .num_pages = plan.num_pages,
    };
    if (mlai_geometry_of(&caps, &plan.geometry, &error) != MLA_OK ||
        mlai_cuda_shape_of(&plan.geometry, device, &plan.shape, &error) != MLA_OK) {
        (void)fprintf(stderr, "%s: %s\n", row->name, error.message);
        exit(2);
    }
    try_another_rule(&plan);
    return plan;
}

/* The pool is one block of random pages over and over. */
typedef struct bench_pool {
    mla_kv_format format;
    unsigned char *block;
    size_t page_bytes;
    gpu_pointer data;
    size_t bytes;
} bench_pool;

static bench_pool pool_take(mla_kv_format format, size_t bytes)
{
    bench_pool pool = {.format = format};
    size_t row_bytes = mla_kv_row_bytes(format, LATENT, ROPE);
    pool.page_bytes = PAGE * row_bytes;
    size_t block_bytes = BLOCK_PAGES * pool.page_bytes;
    pool.block = malloc(block_bytes);
    rng r = rng_of_seed(5);
    float values[LATENT + ROPE];
    enum { DRAWN = 4096 };
    for (size_t i = 0; i < (size_t)BLOCK_PAGES * PAGE; i++) {
        if (i < DRAWN) {
            for (int d = 0; d < LATENT + ROPE; d++) {
                values[d] = (float)rng_normal(&r);
            }
            mlai_row_encode(format, LATENT, ROPE, values, 0.0371F,
                            pool.block + i * row_bytes);
        } else { /* drawn rows in another order */
            memcpy(pool.block + i * row_bytes,
                   pool.block + (size_t)rng_between(&r, 0, DRAWN - 1) * row_bytes,
                   row_bytes);
        }
    }
    pool.bytes = (bytes + block_bytes - 1) / block_bytes * block_bytes;
    pool.data = gpu_take(pool.bytes);
    gpu_to(pool.data, pool.block, block_bytes);
    for (size_t at = block_bytes; at < pool.bytes;) {
        size_t piece = at < pool.bytes - at ? at : pool.bytes - at;
        gpu_copy(pool.data + at, pool.data, piece);
        gpu_wait();
        at += piece;
    }
    return pool;
}

typedef struct bench_arrays {
    int32_t *tables; /* [turns][B][T] */
    uint16_t *query;
    gpu_pointer device_tables, lens, starts, device_query, scale, out, lse, workspace;
} bench_arrays;

static bench_arrays arrays_take(const bench_row *row, const bench_plan *plan)
{
    const mla_caps *caps = &plan->geometry.caps;
    bench_arrays a = {0};
    rng r = rng_of_seed(9);
    int32_t *order = malloc((size_t)plan->num_pages * 4);
    for (int64_t i = 0; i < plan->num_pages; i++) {
        int64_t j = rng_between(&r, 0, i);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    size_t width = (size_t)caps->table_width;
    size_t of_turn = (size_t)row->requests * width;
    a.tables = calloc(of_turn * (size_t)plan->num_turns, 4);
    int32_t starts[513] = {0};
    int32_t lens[512];
    int64_t next = 0;
    for (int32_t turn = 0; turn < plan->num_turns; turn++) {
        for (int32_t q = 0; q < row->requests; q++) {
            lens[q] = length_of(row, q);
            starts[q + 1] = starts[q] + row->rows;
            for (int32_t i = 0; i < (lens[q] + PAGE - 1) / PAGE; i++) {
                a.tables[(size_t)turn * of_turn + (size_t)q * width + (size_t)i] =
                    order[next++];
            }
        }
    }
    free(order);
    size_t num = (size_t)caps->max_query_rows * (size_t)row->heads * (LATENT + ROPE);
    a.query = malloc(num * 2);
    for (size_t i = 0; i < num; i++) {
        a.query[i] = mlai_bf16_from_f32((float)((rng_unit(&r) - 0.5) * 3));
    }
    float scale = 0.0371F;
    a.device_tables = gpu_take(of_turn * (size_t)plan->num_turns * 4);
    a.lens = gpu_take((size_t)row->requests * 4);
    a.starts = gpu_take(((size_t)row->requests + 1) * 4);
    a.device_query = gpu_take(num * 2);
    a.scale = gpu_take(4);
    a.out = gpu_take((size_t)caps->max_query_rows * plan->geometry.output_row_bytes);
    a.lse = gpu_take((size_t)caps->max_query_rows * plan->geometry.lse_row_bytes);
    a.workspace = gpu_take(plan->shape.workspace_bytes);
    gpu_to(a.device_tables, a.tables, of_turn * (size_t)plan->num_turns * 4);
    gpu_to(a.lens, lens, (size_t)row->requests * 4);
    gpu_to(a.starts, starts, ((size_t)row->requests + 1) * 4);
    gpu_to(a.device_query, a.query, num * 2);
    gpu_to(a.scale, &scale, 4);
    gpu_wait();
    return a;
}

static void arrays_give(bench_arrays *a)
{
    gpu_pointer all[] = {a->device_tables, a->lens, a->starts, a->device_query,
                         a->scale,         a->out,  a->lse,    a->workspace};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        gpu_give(all[i]);
    }
    free(a->tables);
    free(a->query);
}

static void *at(gpu_pointer data)
{
    return (void *)(uintptr_t)data;
}

static gpu_graph *record(const bench_row *row, const bench_plan *plan,
                         const bench_pool *pool, const bench_arrays *a, int32_t turn,
                         const char *folder)
{
    size_t of_turn = (size_t)row->requests * (size_t)plan->geometry.caps.table_width;
    mla_buffers buffers = {
        .kv_pool.data = at(pool->data),
        .query.data = at(a->device_query),
        .block_table.data = at(a->device_tables + (size_t)turn * of_turn * 4),
        .context_lens.data = at(a->lens),
        .query_starts.data = at(a->starts),
        .kv_scale.data = pool->format == MLA_KV_FP8 ? at(a->scale) : NULL,
        .output.data = at(a->out),
        .lse.data = at(a->lse),
        .workspace.data = at(a->workspace),
    };
    mla_batch batch = {.num_requests = row->requests,
                       .num_query_rows = plan->geometry.caps.max_query_rows,
                       .max_context_tokens = plan->geometry.caps.max_context_tokens};
    struct mlai_cuda_attend_params params =
        mlai_cuda_attend_params_of(&plan->shape, &plan->geometry, &buffers, &batch);
    gpu_function *attend = gpu_program(&plan->shape, plan->shape.attend, folder);
    gpu_function *merge = gpu_program(&plan->shape, MLAI_CUDA_MERGE, folder);
    gpu_record_begin();
    gpu_launch(attend, mlai_cuda_attend_grid(&plan->shape, &plan->geometry, &batch),
               &params, 0);
    if (plan->shape.has_merge) {
        gpu_launch(merge, mlai_cuda_merge_grid(&plan->shape, &plan->geometry, &batch),
                   &params, 1);
    }
    return gpu_record_end();
}

/* The last row's last head of a turn in double: ||out - ref|| / ||ref||. */
static double error_of(const bench_row *row, const bench_plan *plan, const bench_pool *pool,
                       const bench_arrays *a, int32_t turn)
{
    enum { WIDTH = LATENT + ROPE };
    const mla_caps *caps = &plan->geometry.caps;
    int32_t request = row->requests - 1;
    int64_t packed = (int64_t)caps->max_query_rows * row->heads - 1;
    const int32_t *pages =
        a->tables + ((size_t)turn * (size_t)row->requests + (size_t)request) *
                        (size_t)caps->table_width;
    float key[WIDTH];
    double out[LATENT] = {0};
    double total = 0;
    double most = 0;
    for (int32_t t = 0; t < length_of(row, request); t++) {
        size_t page = (size_t)pages[t / PAGE] % BLOCK_PAGES;
        mlai_row_decode(pool->format, LATENT, ROPE,
                        pool->block + page * pool->page_bytes +
                            (size_t)(t % PAGE) * plan->geometry.row_bytes,
                        0.0371F, key);
        double score = 0;
        for (int d = 0; d < WIDTH; d++) {
            score +=
                (double)key[d] * (double)mlai_f32_from_bf16(a->query[packed * WIDTH + d]);
        }
        score *= (double)caps->softmax_scale;
        double shrink = score > most ? exp(most - score) : 1;
        most = score > most ? score : most;
        double weight = exp(score - most);
        total = total * shrink + weight;
        for (int d = 0; d < LATENT; d++) {
            out[d] = out[d] * shrink + weight * (double)key[d];
        }
    }
    uint16_t got[LATENT];
    gpu_from(got, a->out + (size_t)packed * LATENT * 2, sizeof got);
    double difference = 0;
    double size = 0;
    for (int d = 0; d < LATENT; d++) {
        double ref = out[d] / total;
        double e = (double)mlai_f32_from_bf16(got[d]) - ref;
        difference += e * e;
        size += ref * ref;
    }
    return sqrt(difference / size);
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

static int time_row(const bench_row *row, const bench_pool *pool, const char *folder)
{
    mlai_cuda_device device = gpu_device();
    bench_plan plan = plan_of(row, pool->format, &device);
    bench_arrays a = arrays_take(row, &plan);
    gpu_graph *graphs[MAX_TURNS];
    for (int32_t t = 0; t < plan.num_turns; t++) {
        graphs[t] = record(row, &plan, pool, &a, t, folder);
    }
    float us[200];
    int num = 21;
    gpu_time(graphs, plan.num_turns, num, us);
    qsort(us, (size_t)num, sizeof us[0], compare);
    if (us[num / 2] < 1000) {
        num = 150;
        gpu_time(graphs, plan.num_turns, num, us);
        qsort(us, (size_t)num, sizeof us[0], compare);
    }
    double median = (double)us[num / 2];
    double error = error_of(row, &plan, pool, &a, (num - 1) % plan.num_turns);
    double tokens = 0;
    double pairs = 0;
    for (int32_t r = 0; r < row->requests; r++) {
        tokens += length_of(row, r);
        pairs += (double)length_of(row, r) * row->rows * row->heads;
    }
    float peer = pool->format == MLA_KV_BF16 ? row->triton_bf16_us : row->triton_fp8_us;
    printf("| %s | %s | %.1f | %.1f | %.0f | %.0f | %.1f | %.2f | %.4f | %s x%d |\n",
           row->name, mlai_kv_format_name(pool->format), median, (double)us[num / 20],
           tokens * (double)plan.geometry.row_bytes / median / 1e3,
           pairs * 2176 / median / 1e6, (double)peer, median / (double)peer, error,
           mlai_cuda_program_of(plan.shape.attend)->name, plan.shape.split.max_splits);
    (void)fflush(stdout);
    for (int32_t t = 0; t < plan.num_turns; t++) {
        gpu_graph_drop(graphs[t]);
    }
    arrays_give(&a);
    return !(error < 0.02);
}

int gpu_bench(const char *folder, const char *filter)
{
    gpu_open();
    int num_failed = 0;
    printf("| shape | kv | us | best us | GB/s | TFLOP/s | Triton us | ratio | error | "
           "program, splits |\n|---|---|---|---|---|---|---|---|---|---|\n");
    for (int format = MLA_KV_BF16; format <= MLA_KV_FP8_G128; format++) {
        size_t row_bytes = mla_kv_row_bytes((mla_kv_format)format, LATENT, ROPE);
        const char *only = getenv("MLA_KV");
        if (only && strcmp(only, mlai_kv_format_name((mla_kv_format)format)) != 0) {
            continue;
        }
        bench_pool pool =
            pool_take((mla_kv_format)format, row_bytes * (size_t)128 * 131072);
        for (int i = 0; i < NUM_ROWS; i++) {
            if (strstr(table[i].name, filter)) {
                num_failed += time_row(&table[i], &pool, folder);
            }
        }
        gpu_give(pool.data);
        free(pool.block);
    }
    printf("%d with a wrong answer\n", num_failed);
    return num_failed > 0;
}

void gpu_bench_compile(const char *folder, const char *architecture)
{
    mlai_cuda_device device = {9, 0, 132, 233472, 232448};
    for (int format = MLA_KV_BF16; format <= MLA_KV_FP8_G128; format++) {
        for (int i = 0; i < NUM_ROWS; i++) {
            bench_plan plan = plan_of(&table[i], (mla_kv_format)format, &device);
            gpu_compile(&plan.shape, plan.shape.attend, architecture, folder);
            gpu_compile(&plan.shape, MLAI_CUDA_MERGE, architecture, folder);
        }
    }
}
