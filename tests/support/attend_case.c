/* attend_case.c - building a hostile case and judging an answer: see attend_case.h. */
#include "support/attend_case.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attention/bound.h"
#include "attention/row_layout.h"
#include "attention/split.h"
#include "base/convert.h"

enum { ALL_ONES = 0xff /* a NaN in f32, bf16 and e4m3 */, ALIGN = 16 };

fenced fenced_take(size_t bytes, int fill)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (bytes + page - 1) / page * page;
    fenced memory = {.bytes = bytes, .map_bytes = room + page};
    memory.map = mmap(NULL, memory.map_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory.map == MAP_FAILED ||
        mprotect((char *)memory.map + room, page, PROT_NONE) != 0) {
        perror("fenced_take");
        exit(2);
    }
    memory.data = (unsigned char *)memory.map + (room - bytes) / ALIGN * ALIGN;
    memset(memory.map, fill, room);
    return memory;
}

void fenced_drop(fenced *memory)
{
    if (memory->map) {
        (void)munmap(memory->map, memory->map_bytes);
    }
    *memory = (fenced){0};
}

static int32_t width_of(const attend_case *c)
{
    return c->caps.latent_dim + c->caps.rope_dim;
}

/* What a length counts for: no less than 0, no more than the table names (once it has a
 * width). */
static int64_t length_of(const attend_case *c, int32_t r)
{
    int64_t most = (int64_t)c->caps.table_width * c->caps.page_tokens;
    int64_t length = c->lens[r] < 0 ? 0 : c->lens[r];
    return most > 0 && length > most ? most : length;
}

static int64_t pages_for(const attend_case *c, int32_t r)
{
    int64_t tokens = length_of(c, r);
    return (tokens + c->caps.page_tokens - 1) / c->caps.page_tokens;
}

void attend_case_shape(attend_case *c)
{
    mla_caps *caps = &c->caps;
    int32_t num_rows = 0;
    int64_t num_pages = 3; /* pages that nobody owns */
    int32_t table_width = 2;
    for (int32_t r = 0; r < c->num_requests; r++) {
        int64_t pages = pages_for(c, r);
        num_rows += c->rows[r];
        num_pages += pages;
        table_width = pages + 2 > table_width ? (int32_t)pages + 2 : table_width;
    }
    caps->struct_size = sizeof *caps;
    caps->max_requests = c->num_requests;
    caps->max_query_rows = num_rows > 0 ? num_rows : 1;
    caps->table_width = caps->table_width ? caps->table_width : table_width;
    caps->max_context_tokens = (int64_t)caps->table_width * caps->page_tokens;
    caps->num_pages = num_pages;
    for (int32_t r = 0; r < c->num_requests; r++) {
        if (c->rows[r] > caps->max_rows_per_request) {
            caps->max_rows_per_request = c->rows[r];
        }
    }
    if (caps->max_rows_per_request == 0) {
        caps->max_rows_per_request = 1;
    }
    c->num_queries = (int64_t)num_rows * caps->num_heads;
    c->batch = (mla_batch)MLA_INIT(mla_batch);
    c->batch.num_requests = c->num_requests;
    c->batch.num_query_rows = num_rows;
    c->batch.max_context_tokens = caps->max_context_tokens;
}

static size_t page_stride(const attend_case *c)
{
    size_t rows = (size_t)c->caps.page_tokens *
                  mla_kv_row_bytes(c->caps.kv_format, c->caps.latent_dim, c->caps.rope_dim);
    return c->caps.page_stride_bytes ? (size_t)c->caps.page_stride_bytes : rows;
}

static void shuffle(int32_t *values, int64_t num, rng *random)
{
    for (int64_t i = num - 1; i > 0; i--) {
        int64_t j = rng_between(random, 0, i);
        int32_t kept = values[i];
        values[i] = values[j];
        values[j] = kept;
    }
}

static int32_t nonsense(const attend_case *c, rng *random)
{
    const int32_t choices[] = {-1, (int32_t)c->caps.num_pages, INT32_MAX, INT32_MIN, 0};
    return choices[rng_between(random, 0, 4)];
}

/* Every request gets pages of its own, in no order. */
static void fill_table(attend_case *c, rng *random)
{
    int64_t num_pages = c->caps.num_pages;
    int32_t *order = calloc((size_t)num_pages, sizeof *order);
    assert(order);
    for (int64_t i = 0; i < num_pages; i++) {
        order[i] = (int32_t)i;
    }
    shuffle(order, num_pages, random);
    int64_t next = 0;
    int32_t *table = (int32_t *)(void *)c->table.data;
    for (int32_t r = 0; r < c->num_requests; r++) {
        int64_t used = pages_for(c, r);
        for (int64_t slot = 0; slot < c->caps.table_width; slot++) {
            int32_t *to = &table[(int64_t)r * c->caps.table_width + slot];
            *to = slot < used ? order[next++] : nonsense(c, random);
            if (slot < used && c->has_bad_pages && rng_between(random, 0, 3) == 0) {
                const int32_t bad[] = {-1, (int32_t)num_pages, INT32_MAX};
                *to = bad[rng_between(random, 0, 2)];
            }
        }
    }
    free(order);
}

/* The first key that a row of the request sees: those before it stay NaN. */
static int64_t first_visible(const attend_case *c, int32_t r)
{
    if (c->caps.window == 0) {
        return 0;
    }
    int64_t length = length_of(c, r);
    int64_t first_end = c->caps.causal ? length - c->rows[r] + 1 : length;
    return first_end > c->caps.window ? first_end - c->caps.window : 0;
}

static void fill_request(attend_case *c, int32_t r, float scale, float *values, rng *random)
{
    const int32_t *table =
        (const int32_t *)(const void *)c->table.data + (int64_t)r * c->caps.table_width;
    size_t row_bytes =
        mla_kv_row_bytes(c->caps.kv_format, c->caps.latent_dim, c->caps.rope_dim);
    int64_t length = length_of(c, r);
    for (int64_t key = first_visible(c, r); key < length && c->rows[r] > 0; key++) {
        int64_t page = table[key / c->caps.page_tokens];
        for (int32_t d = 0; d < width_of(c); d++) {
            values[d] = (float)rng_normal(random);
        }
        if (page >= 0 && page < c->caps.num_pages) {
            mlai_row_encode(c->caps.kv_format, c->caps.latent_dim, c->caps.rope_dim, values,
                            scale,
                            c->pool.data + (size_t)page * page_stride(c) +
                                (size_t)(key % c->caps.page_tokens) * row_bytes);
        }
    }
}

static void fill_pool(attend_case *c, rng *random)
{
    float scale = 0.0371F;
    if (c->caps.kv_format == MLA_KV_FP8) {
        c->kv_scale = fenced_take(sizeof scale, 0);
        memcpy(c->kv_scale.data, &scale, sizeof scale);
    }
    c->pool = fenced_take((size_t)c->caps.num_pages * page_stride(c), ALL_ONES);
    float *values = calloc((size_t)width_of(c), sizeof *values);
    assert(values);
    for (int32_t r = 0; r < c->num_requests; r++) {
        fill_request(c, r, scale, values, random);
    }
    free(values);
}

/* Scores of keys ~ N(0,1) have the deviation that was asked for. */
static void fill_query(attend_case *c, rng *random)
{
    double deviation = c->logit_deviation > 0 ? c->logit_deviation : 1.5;
    double size = deviation / sqrt((double)width_of(c)) / (double)c->caps.softmax_scale;
    float scale = (float)(size / 37.0);
    size_t num = (size_t)c->num_queries * (size_t)width_of(c);
    size_t item = c->caps.query_dtype == MLA_F32    ? 4
                  : c->caps.query_dtype == MLA_BF16 ? 2
                                                    : 1;
    size_t room =
        (size_t)c->caps.max_query_rows * (size_t)c->caps.num_heads; /* no row: one */
    c->query = fenced_take(room * (size_t)width_of(c) * item, ALL_ONES);
    if (c->caps.query_dtype == MLA_E4M3) {
        c->query_scale = fenced_take(sizeof scale, 0);
        memcpy(c->query_scale.data, &scale, sizeof scale);
    }
    for (size_t i = 0; i < num; i++) {
        float value = (float)(size * rng_normal(random));
        if (c->caps.query_dtype == MLA_F32) {
            memcpy(c->query.data + i * item, &value, item);
        } else if (c->caps.query_dtype == MLA_BF16) {
            uint16_t bits = mlai_bf16_from_f32(value);
            memcpy(c->query.data + i * item, &bits, item);
        } else {
            c->query.data[i] = mlai_e4m3_from_f32(value / scale);
        }
    }
}

static void fill_lengths(attend_case *c)
{
    c->lengths = fenced_take((size_t)c->num_requests * sizeof(int32_t), ALL_ONES);
    c->starts = fenced_take(((size_t)c->num_requests + 1) * sizeof(int32_t), ALL_ONES);
    memcpy(c->lengths.data, c->lens, c->lengths.bytes);
    int32_t *starts = (int32_t *)(void *)c->starts.data;
    starts[0] = 0;
    for (int32_t r = 0; r < c->num_requests; r++) {
        starts[r + 1] = starts[r] + c->rows[r];
    }
}

static mla_in in_of(const fenced *memory)
{
    return (mla_in){memory->data, memory->bytes};
}

static void ask_oracle(attend_case *c)
{
    size_t num = (size_t)c->num_queries;
    size_t dim = (size_t)c->caps.latent_dim;
    c->expected.out = calloc(num * dim + 1, sizeof(double));
    c->expected.magnitude = calloc(num * dim + 1, sizeof(double));
    c->expected.lse = calloc(num + 1, sizeof(double));
    c->expected.score_magnitude = calloc(num + 1, sizeof(double));
    assert(c->expected.out && c->expected.magnitude && c->expected.lse &&
           c->expected.score_magnitude);
    mlai_oracle_attend(&c->caps, &c->buffers, &c->batch, &c->expected);
}

void attend_case_build(attend_case *c, rng *random)
{
    attend_case_shape(c);
    c->table = fenced_take(
        (size_t)c->num_requests * (size_t)c->caps.table_width * sizeof(int32_t), ALL_ONES);
    fill_table(c, random);
    fill_pool(c, random);
    fill_query(c, random);
    fill_lengths(c);
    c->buffers = (mla_buffers)MLA_INIT(mla_buffers);
    c->buffers.kv_pool = in_of(&c->pool);
    c->buffers.query = in_of(&c->query);
    c->buffers.block_table = in_of(&c->table);
    c->buffers.context_lens = in_of(&c->lengths);
    c->buffers.query_starts = in_of(&c->starts);
    c->buffers.kv_scale = in_of(&c->kv_scale);
    c->buffers.query_scale = in_of(&c->query_scale);
    ask_oracle(c);
}

void attend_case_drop(attend_case *c)
{
    fenced *all[] = {&c->pool,   &c->query,    &c->table,      &c->lengths,
                     &c->starts, &c->kv_scale, &c->query_scale};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        fenced_drop(all[i]);
    }
    free(c->expected.out);
    free(c->expected.magnitude);
    free(c->expected.lse);
    free(c->expected.score_magnitude);
    c->expected = (mlai_oracle_out){0};
}

static const double u = 0x1p-24;

/* Probabilities below 2^-126 are 0 in f32: far below what any test's values can show. */
static const double absolute = 0x1p-100;

/* How far a query's values may be from the oracle's. */
typedef struct allowance {
    double relative, rounding, absolute; /* of A; of |out|; whatever they are */
    double lse;
} allowance;

/* Scores: sums of tensor cores, which cut and do not round, 2^-20 of the score's magnitude.
 * Weights: rounded to bf16 (2^-8 of A) or f16 (2^-11 of A); f16 weights below 2^-28 of the
 * largest lose digits, 2^-39 each times a value. */
static allowance cuda_allowance(const attend_case *c, attend_sums sums,
                                double score_magnitude, double lse)
{
    bool is_fp8 = c->caps.kv_format == MLA_KV_FP8;
    double score = 0x1p-20 * (score_magnitude + 16);
    return (allowance){
        .relative = expm1(2 * score) + 1.01 * (is_fp8 ? 0x1p-11 : 0x1p-8),
        .rounding = 1.01 * sums.u_out,
        .absolute = is_fp8 ? 0x1p-32 : absolute,
        .lse = score + 4 * u * (fabs(lse) + 16),
    };
}

static allowance allowance_of(const attend_case *c, attend_sums sums,
                              double score_magnitude, double lse)
{
    if (lse == -HUGE_VAL) {
        return (allowance){0, 0, 0, 0}; /* where nothing is seen, nothing is off */
    }
    if (sums.is_cuda) {
        return cuda_allowance(c, sums, score_magnitude, lse);
    }
    const mlai_bound_terms terms = {width_of(c), sums.split_tokens, sums.num_merges,
                                    score_magnitude, lse};
    mlai_bound bound = mlai_bound_of(&terms);
    return (allowance){bound.relative, sums.u_out, absolute, bound.lse};
}

static void note(attend_verdict *verdict, const char *what, int64_t query, int64_t column,
                 double got, double expected, double allowed)
{
    if (verdict->num_wrong++ == 0) {
        (void)snprintf(verdict->first_wrong, sizeof verdict->first_wrong,
                       "%s of query %lld, column %lld: %.9g, and %.9g +- %.3g was expected",
                       what, (long long)query, (long long)column, got, expected, allowed);
    }
}

/* Places of NaN and infinities first and exactly. */
static bool is_same_special(double got, double expected)
{
    return isnan(expected) ? isnan(got) : got == expected;
}

static void judge_value(attend_verdict *verdict, const char *what, int64_t query,
                        int64_t column, double got, double expected, double allowed)
{
    if (!isfinite(expected) || !isfinite(got)) {
        if (!is_same_special(got, expected)) {
            note(verdict, what, query, column, got, expected, 0);
        }
        return;
    }
    double error = fabs(got - expected);
    if (!(error <= allowed)) {
        note(verdict, what, query, column, got, expected, allowed);
    }
    if (allowed > 0) {
        verdict->worst_share = fmax(verdict->worst_share, error / allowed);
    }
}

static void judge_query(const attend_case *c, const float *out, float lse, int64_t query,
                        attend_sums sums, attend_verdict *verdict)
{
    int64_t dim = c->caps.latent_dim;
    double ref_lse = c->expected.lse[query];
    allowance allow = allowance_of(c, sums, c->expected.score_magnitude[query], ref_lse);
    judge_value(verdict, "lse", query, 0, (double)lse, ref_lse, allow.lse);
    for (int64_t d = 0; d < dim; d++) {
        double ref = c->expected.out[query * dim + d];
        double magnitude = c->expected.magnitude[query * dim + d];
        double rounding = allow.rounding * fabs(ref);
        double allowed = allow.relative * magnitude + rounding + allow.absolute;
        judge_value(verdict, "out", query, d, (double)out[d], ref, allowed);
        double error = fabs((double)out[d] - ref) - rounding;
        if (magnitude > absolute && error > 0) {
            verdict->worst_in_u = fmax(verdict->worst_in_u, error / (u * magnitude));
        }
    }
}

/* Keys that the row sees at least: bad pages may mask any. */
static int64_t num_seen_by(const attend_case *c, int32_t r, int32_t row)
{
    int64_t length = length_of(c, r);
    int64_t num = c->caps.causal ? length - c->rows[r] + row + 1 : length;
    return c->caps.window > 0 && num > c->caps.window ? c->caps.window : num;
}

/* What the answers of some queries look like. */
typedef struct look {
    int64_t num, num_zero;
    double share; /* sum of |out| / A, which is 1 where one key decides */
} look;

static void look_at(const attend_case *c, int64_t query, look *seen)
{
    int64_t dim = c->caps.latent_dim;
    for (int64_t i = query * dim; i < (query + 1) * dim; i++) {
        double magnitude = c->expected.magnitude[i];
        seen->num++;
        seen->num_zero += c->expected.out[i] == 0;
        seen->share += magnitude > 0 ? fabs(c->expected.out[i]) / magnitude : 1;
    }
}

/* A case proves something only if its answers are not mostly zeros and, where scores are
 * ordinary and keys many, no single key decides. */
static bool is_mistrusted(const attend_case *c)
{
    enum { MANY = 15 };
    look all = {0};
    look crowded = {0};
    int64_t query = 0;
    for (int32_t r = 0; r < c->num_requests; r++) {
        for (int32_t i = 0; i < c->rows[r] * c->caps.num_heads; i++, query++) {
            bool is_ordinary = c->logit_deviation == 0 && !c->has_bad_pages;
            if (c->expected.lse[query] > -HUGE_VAL) {
                look_at(c, query, &all);
                if (is_ordinary && num_seen_by(c, r, i / c->caps.num_heads) >= MANY) {
                    look_at(c, query, &crowded);
                }
            }
        }
    }
    return 2 * all.num_zero > all.num ||
           (crowded.num > 0 && crowded.share > 0.8 * (double)crowded.num);
}

attend_verdict attend_case_judge(const attend_case *c, const float *out, const float *lse,
                                 attend_sums sums)
{
    attend_verdict verdict = {0};
    for (int64_t query = 0; query < c->num_queries; query++) {
        judge_query(c, out + query * c->caps.latent_dim, lse[query], query, sums, &verdict);
    }
    verdict.is_mistrusted = is_mistrusted(c);
    return verdict;
}

float *attend_case_out_as_f32(const attend_case *c, const unsigned char *out)
{
    size_t num = (size_t)c->num_queries * (size_t)c->caps.latent_dim;
    float *values = calloc(num + 1, sizeof *values);
    assert(values);
    for (size_t i = 0; i < num; i++) {
        if (c->caps.output_dtype == MLA_F32) {
            memcpy(&values[i], out + i * sizeof(float), sizeof(float));
        } else {
            uint16_t bits;
            memcpy(&bits, out + i * sizeof bits, sizeof bits);
            values[i] = mlai_f32_from_bf16(bits);
        }
    }
    return values;
}

attend_sums attend_case_sums(const attend_case *c)
{
    attend_sums sums = {.u_out = c->caps.output_dtype == MLA_F32 ? 0x1p-24 : 0x1p-8};
    for (int32_t r = 0; r < c->num_requests; r++) {
        int64_t most = (int64_t)c->caps.table_width * c->caps.page_tokens;
        int64_t length = c->lens[r] > most ? most : c->lens[r] > 0 ? c->lens[r] : 0;
        int64_t tokens = mlai_split_tokens(length);
        int32_t merges = (int32_t)((length + tokens - 1) / tokens);
        sums.split_tokens = tokens > sums.split_tokens ? tokens : sums.split_tokens;
        sums.num_merges = merges > sums.num_merges ? merges : sums.num_merges;
    }
    return sums;
}

attend_sums attend_case_sums_on_cuda(const attend_case *c)
{
    return (attend_sums){.u_out = c->caps.output_dtype == MLA_F32 ? 0x1p-24 : 0x1p-8,
                         .is_cuda = true};
}
