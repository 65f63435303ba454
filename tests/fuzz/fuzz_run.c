/* Bytes become a small plan, a batch and its arrays, NaN and infinities among them, and each
 * level of this CPU runs it: the answer is the oracle's within the bound and special in the
 * same places, the inputs cannot be written, nothing is written past an output, and neither
 * what may not be read nor the number of threads nor a replay changes a bit. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "attention/visibility.h"
#include "check.h"
#include "device/cpu.h"
#include "support/attend_case.h"
#include "support/rig.h"

typedef struct reader {
    const uint8_t *data;
    size_t num_bytes;
} reader;

/* 0 where the bytes have ended; at most `most`. */
static int32_t next(reader *from, int32_t most)
{
    enum { BITS = 8 };
    uint32_t value = 0;
    for (int i = 0; i < 2 && from->num_bytes > 0; i++) {
        value = value << BITS | *from->data++;
        from->num_bytes--;
    }
    return (int32_t)(value % (uint32_t)(most + 1));
}

#define PICK(from, array)                                                                  \
    (array)[next((from), (int32_t)(sizeof(array) / sizeof *(array)) - 1)]

static mla_caps read_caps(reader *from)
{
    static const mla_dtype queries[] = {MLA_F32, MLA_BF16, MLA_E4M3};
    static const int32_t pages[] = {1, 16, 48};
    static const int32_t latents[] = {64, 128, 192};
    static const int32_t ropes[] = {0, 16, 64};
    static const int32_t paddings[] = {0, 16, 4096};
    static const int32_t windows[] = {0, 1, 63, 64, 65, 600};
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = (mla_mode)(MLA_DECODE + next(from, 2));
    caps.kv_format = (mla_kv_format)(MLA_KV_BF16 + next(from, 3));
    caps.query_dtype = PICK(from, queries);
    caps.output_dtype = next(from, 1) ? MLA_BF16 : MLA_F32;
    caps.num_heads = 1 + next(from, 3);
    caps.latent_dim = PICK(from, latents);
    if (caps.kv_format == MLA_KV_FP8_G128) {
        caps.latent_dim = caps.latent_dim / 128 * 128 + (caps.latent_dim < 128 ? 128 : 0);
    }
    caps.rope_dim = PICK(from, ropes);
    caps.page_tokens = PICK(from, pages);
    caps.causal = next(from, 1);
    caps.window = PICK(from, windows);
    caps.softmax_scale = 0.0721688F;
    size_t page_bytes = (size_t)caps.page_tokens *
                        mla_kv_row_bytes(caps.kv_format, caps.latent_dim, caps.rope_dim);
    int32_t padding = PICK(from, paddings);
    if (padding > 0 || page_bytes % 16 != 0) {
        caps.page_stride_bytes = (int64_t)((page_bytes + 15) / 16 * 16) + padding;
    }
    return caps;
}

static attend_case read_case(reader *from)
{
    enum { MOST_TOKENS = 1200, FEW_TOKENS = 130, MOST_ROWS = 5 };
    static const int32_t odd[] = {-1, INT32_MIN, 1, 0, 64, 65, 513};
    attend_case c = {.caps = read_caps(from)};
    c.num_requests = 1 + next(from, 3);
    int32_t num_rows = 0;
    for (int32_t r = 0; r < c.num_requests; r++) {
        int32_t kind = next(from, 3);
        c.lens[r] = kind == 0             ? PICK(from, odd)
                    : kind == 1 && r == 0 ? next(from, MOST_TOKENS)
                                          : next(from, FEW_TOKENS);
        c.rows[r] = next(from, c.caps.mode == MLA_DECODE ? 1 : MOST_ROWS);
        num_rows += c.rows[r];
    }
    c.rows[0] += num_rows == 0; /* the arrays are just as long as the rows */
    int32_t odd_one = next(from, 7);
    c.has_bad_pages = odd_one < 2;
    c.logit_deviation = odd_one == 2 ? 2000 : 0;
    return c;
}

typedef struct place {
    unsigned char *pool;
    const mla_caps *caps;
    size_t row_bytes, page_stride;
} place;

static place place_of(const attend_case *c)
{
    place at = {.pool = c->pool.data, .caps = &c->caps};
    at.row_bytes =
        mla_kv_row_bytes(c->caps.kv_format, c->caps.latent_dim, c->caps.rope_dim);
    at.page_stride = c->caps.page_stride_bytes ? (size_t)c->caps.page_stride_bytes
                                               : at.row_bytes * (size_t)c->caps.page_tokens;
    return at;
}

/* Offset of a key in the pool; -1 where its page is none. */
static int64_t find_key(const attend_case *c, int32_t r, int64_t key)
{
    place at = place_of(c);
    const int32_t *table =
        (const int32_t *)(const void *)c->table.data + (ptrdiff_t)r * c->caps.table_width;
    int64_t page = table[key / c->caps.page_tokens];
    return page < 0 || page >= c->caps.num_pages
               ? -1
               : page * (int64_t)at.page_stride +
                     key % c->caps.page_tokens * (int64_t)at.row_bytes;
}

static size_t item_bytes(mla_dtype dtype)
{
    return dtype == MLA_F32 ? 4 : dtype == MLA_BF16 ? 2 : 1;
}

/* kind 0: NaN; 1, 2: infinities; 3: -0. e4m3 has no infinity: NaN instead. */
static void write_special(unsigned char *to, mla_dtype dtype, int32_t kind)
{
    static const uint32_t f32[] = {0x7fc00000U, 0x7f800000U, 0xff800000U, 0x80000000U};
    static const uint8_t e4m3[] = {0x7f, 0xff, 0x7f, 0x80};
    uint16_t half = (uint16_t)(f32[kind] >> 16);
    if (dtype == MLA_F32) {
        memcpy(to, &f32[kind], sizeof f32[kind]);
    } else if (dtype == MLA_BF16) {
        memcpy(to, &half, sizeof half);
    } else {
        *to = e4m3[kind];
    }
}

static void poke_key(const attend_case *c, reader *from, int32_t kind)
{
    int32_t r = next(from, c->num_requests - 1);
    int64_t most = (int64_t)c->caps.table_width * c->caps.page_tokens;
    int32_t length = c->lens[r] > most ? (int32_t)most : c->lens[r];
    int32_t column = next(from, c->caps.latent_dim + c->caps.rope_dim - 1);
    int64_t at = length > 0 ? find_key(c, r, next(from, length - 1)) : -1;
    if (at < 0) {
        return;
    }
    mla_dtype dtype = c->caps.kv_format == MLA_KV_F32    ? MLA_F32
                      : c->caps.kv_format == MLA_KV_BF16 ? MLA_BF16
                                                         : MLA_E4M3;
    size_t offset = (size_t)column * item_bytes(dtype);
    if (c->caps.kv_format == MLA_KV_FP8_G128 && column >= c->caps.latent_dim) {
        dtype = MLA_BF16;
        offset = mla_kv_row_bytes(MLA_KV_FP8_G128, c->caps.latent_dim, 0) +
                 2 * (size_t)(column - c->caps.latent_dim);
    }
    write_special(c->pool.data + at + offset, dtype, kind);
}

static void poke_query(const attend_case *c, reader *from, int32_t kind)
{
    size_t item = item_bytes(c->caps.query_dtype);
    if (c->query.bytes > 0) {
        int32_t at = next(from, (int32_t)(c->query.bytes / item) - 1);
        write_special(c->query.data + (size_t)at * item, c->caps.query_dtype, kind);
    }
}

static bool poke(const attend_case *c, reader *from)
{
    enum { MOST_POKES = 8 };
    /* Where weights underflow in f32 and not in double, an infinity falls elsewhere. */
    int32_t num = c->logit_deviation > 0 ? 0 : next(from, MOST_POKES);
    for (int32_t i = 0; i < num; i++) {
        int32_t kind = next(from, 3);
        if (next(from, 3) == 0) {
            poke_query(c, from, kind);
        } else {
            poke_key(c, from, kind);
        }
    }
    return num > 0;
}

/* What no row sees is changed: the pool but its visible rows, and the table past the ends. */
static void change_unseen(const attend_case *c, int fill)
{
    place at = place_of(c);
    unsigned char *pool = malloc(c->pool.bytes);
    FUZZ_CHECK(pool);
    memcpy(pool, c->pool.data, c->pool.bytes);
    memset(c->pool.data, fill, c->pool.bytes);
    for (int32_t r = 0; r < c->num_requests; r++) {
        int64_t length = mlai_visible_length(c->lens[r], (int64_t)c->caps.table_width *
                                                             c->caps.page_tokens);
        int32_t *table =
            (int32_t *)(void *)c->table.data + (ptrdiff_t)r * c->caps.table_width;
        for (int32_t row = 0; row < c->rows[r]; row++) {
            mlai_key_range keys = mlai_visible_keys(length, c->rows[r], row,
                                                    c->caps.causal != 0, c->caps.window);
            for (int64_t key = keys.begin; key < keys.end; key++) {
                int64_t offset = find_key(c, r, key);
                if (offset >= 0) {
                    memcpy(c->pool.data + offset, pool + offset, at.row_bytes);
                }
            }
        }
        int64_t used = (length + c->caps.page_tokens - 1) / c->caps.page_tokens;
        for (int64_t slot = c->rows[r] > 0 ? used : 0; slot < c->caps.table_width; slot++) {
            table[slot] = fill;
        }
    }
    free(pool);
}

static void protect(const attend_case *c, int protection)
{
    const fenced *all[] = {&c->pool,   &c->query,    &c->table,      &c->lengths,
                           &c->starts, &c->kv_scale, &c->query_scale};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        FUZZ_CHECK(!all[i]->map ||
                   mprotect(all[i]->map, all[i]->map_bytes - 4096, protection) == 0);
    }
}

typedef struct answer {
    fenced out, lse;
} answer;

/* The bytes around a block are still `fill`. */
static void check_fence(const fenced *memory, int fill)
{
    const unsigned char *map = memory->map;
    for (size_t i = 0; i < memory->map_bytes - 4096; i++) {
        FUZZ_CHECK((map + i >= memory->data && map + i < memory->data + memory->bytes) ||
                   map[i] == fill);
    }
}

static answer run(const attend_case *c, mla_context *context, int fill, bool is_replay)
{
    mla_plan *plan = rig_plan(context, &c->caps);
    mla_requirements need = MLA_INIT(mla_requirements);
    mla_binding *binding = NULL;
    FUZZ_CHECK(mla_plan_requirements(plan, &need, NULL) == MLA_OK);
    answer to = {fenced_take(need.output.bytes, fill), fenced_take(need.lse.bytes, fill)};
    /* At a multiple of 64 bytes, with what that leaves before the fence. */
    fenced workspace = fenced_take((need.workspace.bytes + 63) / 64 * 64, fill);
    mla_buffers buffers = c->buffers;
    buffers.output = (mla_out){to.out.data, to.out.bytes};
    buffers.lse = (mla_out){to.lse.data, to.lse.bytes};
    buffers.workspace = (mla_out){workspace.data, workspace.bytes};
    FUZZ_CHECK(mla_bind(plan, &buffers, &binding, NULL) == MLA_OK);
    if (is_replay) {
        FUZZ_CHECK(mla_record(binding, &c->batch, NULL) == MLA_OK);
    }
    mla_status status = is_replay ? mla_replay(binding, (mla_stream){NULL}, NULL)
                                  : mla_run(binding, &c->batch, (mla_stream){NULL}, NULL);
    FUZZ_CHECK(status == MLA_OK);
    check_fence(&to.out, fill);
    check_fence(&to.lse, fill);
    check_fence(&workspace, fill);
    mla_unbind(&binding);
    mla_plan_release(&plan);
    fenced_drop(&workspace);
    return to;
}

static void drop(answer *a)
{
    fenced_drop(&a->out);
    fenced_drop(&a->lse);
}

static void check_level(attend_case *c, mla_context *const context[2])
{
    enum { ONES = 0xff };
    protect(c, PROT_READ);
    answer got = run(c, context[0], ONES, false);
    protect(c, PROT_READ | PROT_WRITE);
    float *out = attend_case_out_as_f32(c, got.out.data);
    attend_verdict verdict = attend_case_judge(
        c, out, (const float *)(const void *)got.lse.data, attend_case_sums(c));
    if (verdict.num_wrong > 0) {
        fprintf(stderr, "%s\n", verdict.first_wrong);
    }
    FUZZ_CHECK(verdict.num_wrong == 0);
    free(out);
    change_unseen(c, 0);
    answer again = run(c, context[1], 0, true);
    FUZZ_CHECK(memcmp(got.out.data, again.out.data, got.out.bytes) == 0);
    FUZZ_CHECK(memcmp(got.lse.data, again.lse.data, got.lse.bytes) == 0);
    drop(&again);
    change_unseen(c, ONES);
    again = run(c, context[1], ONES, false);
    FUZZ_CHECK(memcmp(got.out.data, again.out.data, got.out.bytes) == 0);
    FUZZ_CHECK(memcmp(got.lse.data, again.lse.data, got.lse.bytes) == 0);
    drop(&again);
    drop(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    static mla_context *context[2][2]; /* [level][one thread, three] */
    static const uint32_t levels[] = {MLA_ISA_C, MLA_ISA_AVX2};
    reader from = {data, num_bytes};
    rng random = rng_of_seed((uint64_t)next(&from, UINT16_MAX));
    attend_case c = read_case(&from);
    attend_case_build(&c, &random);
    if (poke(&c, &from)) {
        mlai_oracle_attend(&c.caps, &c.buffers, &c.batch, &c.expected);
    }
    for (int i = 0; i < 2; i++) {
        if (!(mlai_cpu_isa() & levels[i])) {
            continue;
        }
        for (int j = 0; j < 2; j++) {
            context[i][j] =
                context[i][j] ? context[i][j] : rig_context_of_isa(1 + 2 * j, levels[i]);
        }
        check_level(&c, context[i]);
    }
    attend_case_drop(&c);
    return 0;
}
