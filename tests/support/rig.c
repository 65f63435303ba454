/* rig.c - a plan and its buffers: see rig.h. */
#include "support/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/convert.h"
#include "support/device_memory.h"
#include "support/gpu.h"
#include "support/must.h"

mla_backend rig_backend = MLA_BACKEND_CPU;
bool rig_is_on_gpu;

mla_caps rig_caps(void)
{
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = MLA_DECODE;
    caps.kv_format = rig_backend == MLA_BACKEND_CPU ? MLA_KV_F32 : MLA_KV_BF16;
    caps.query_dtype = rig_backend == MLA_BACKEND_CPU ? MLA_F32 : MLA_BF16;
    caps.output_dtype = MLA_F32;
    caps.num_heads = 4;
    caps.latent_dim = 128;
    caps.rope_dim = 64;
    caps.page_tokens = 16;
    caps.causal = 1;
    caps.softmax_scale = 0.07F;
    caps.max_requests = 4;
    caps.max_query_rows = 4;
    caps.max_rows_per_request = 1;
    caps.table_width = 70;
    caps.max_context_tokens = 1100;
    caps.num_pages = 300;
    return caps;
}

mla_caps rig_extend_caps(int32_t max_requests, int32_t max_rows, int32_t tokens)
{
    mla_caps caps = rig_caps();
    caps.mode = MLA_EXTEND;
    caps.max_requests = max_requests;
    caps.max_query_rows = max_rows;
    caps.max_rows_per_request = max_rows;
    caps.max_context_tokens = tokens;
    caps.table_width = (tokens + caps.page_tokens - 1) / caps.page_tokens;
    caps.num_pages = (int64_t)caps.table_width * max_requests + 7;
    return caps;
}

static mla_context *create(const mla_context_options *options)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_context *context = NULL;
    must(mla_context_create(options, &context, &err), &err);
    return context;
}

mla_context *rig_context(int32_t num_threads, const mla_allocator *allocator)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = rig_backend;
    options.num_threads = num_threads;
    options.allocator = allocator;
    return create(&options);
}

mla_context *rig_context_of_isa(int32_t num_threads, uint32_t isa_mask)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = num_threads;
    options.isa_mask = isa_mask;
    return create(&options);
}

mla_plan *rig_plan(mla_context *context, const mla_caps *caps)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_session *session = NULL;
    mla_plan *plan = NULL;
    mla_ticket ticket;
    mla_session_options options = MLA_INIT(mla_session_options);
    options.cache_dir = gpu_cache();
    must(mla_session_open(context, &options, &session, &err), &err);
    must(mla_session_add(session, caps, NULL, &ticket, &err), &err);
    must(mla_session_prepare(session, &err), &err);
    must(mla_session_publish(session, ticket, &plan, &err), &err);
    mla_session_close(&session);
    return plan;
}

static void *take(size_t bytes)
{
    enum { ALIGN = 64 };
    void *data = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
    assert_non_null(data);
    memset(data, 0xff, bytes);
    return data;
}

static mla_in take_in(size_t bytes)
{
    return (mla_in){take(bytes), bytes};
}

static mla_out take_out(size_t bytes)
{
    return (mla_out){take(bytes), bytes};
}

mla_buffers rig_buffers(const mla_requirements *need)
{
    mla_buffers buffers = MLA_INIT(mla_buffers);
    buffers.kv_pool = take_in(need->kv_pool.bytes);
    buffers.query = take_in(need->query.bytes);
    buffers.block_table = take_in(need->block_table.bytes);
    buffers.context_lens = take_in(need->context_lens.bytes);
    buffers.query_starts = take_in(need->query_starts.bytes);
    buffers.output = take_out(need->output.bytes);
    buffers.lse = take_out(need->lse.bytes);
    buffers.workspace = take_out(need->workspace.bytes);
    return buffers;
}

static void *bytes_of(mla_in in)
{
    union {
        const void *read;
        void *write;
    } same = {in.data};
    return same.write;
}

void rig_buffers_free(mla_buffers *buffers)
{
    free(bytes_of(buffers->kv_pool));
    free(bytes_of(buffers->query));
    free(bytes_of(buffers->block_table));
    free(bytes_of(buffers->context_lens));
    free(bytes_of(buffers->query_starts));
    free(bytes_of(buffers->kv_scale));
    free(bytes_of(buffers->query_scale));
    free(buffers->output.data);
    free(buffers->lse.data);
    free(buffers->workspace.data);
}

/* Where the members of mla_buffers are: `in` and `out` are alike. The outputs come last. */
static const size_t member[] = {
    offsetof(mla_buffers, kv_pool),      offsetof(mla_buffers, query),
    offsetof(mla_buffers, block_table),  offsetof(mla_buffers, context_lens),
    offsetof(mla_buffers, query_starts), offsetof(mla_buffers, kv_scale),
    offsetof(mla_buffers, query_scale),  offsetof(mla_buffers, output),
    offsetof(mla_buffers, lse),          offsetof(mla_buffers, workspace),
};
enum { NUM_MEMBERS = sizeof member / sizeof member[0], FIRST_OUTPUT = 7 };

static mla_in member_of(const mla_buffers *buffers, int i)
{
    mla_in in;
    memcpy(&in, (const char *)buffers + member[i], sizeof in);
    return in;
}

mla_in rig_lend(const void *data, size_t bytes)
{
    bool is_copied = rig_is_on_gpu && bytes > 0;
    return (mla_in){is_copied ? memory_take(bytes, data) : data, bytes};
}

void rig_lend_end(mla_in in)
{
    if (rig_is_on_gpu && in.bytes > 0) {
        memory_give(in.data);
    }
}

mla_buffers rig_bound(const mla_buffers *buffers)
{
    mla_buffers bound = *buffers;
    for (int i = 0; i < NUM_MEMBERS; i++) {
        mla_in from = member_of(buffers, i);
        mla_in to = rig_lend(from.data, from.bytes);
        memcpy((char *)&bound + member[i], &to, sizeof to);
    }
    return bound;
}

void rig_bound_free(mla_buffers *bound)
{
    for (int i = 0; i < NUM_MEMBERS; i++) {
        rig_lend_end(member_of(bound, i));
    }
}

static mla_in take_scale(float value)
{
    mla_in scale = take_in(sizeof value);
    memcpy(bytes_of(scale), &value, sizeof value);
    return scale;
}

rig rig_open(const mla_caps *caps, int32_t num_threads, uint64_t seed)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    rig made = {.caps = *caps, .random = rng_of_seed(seed)};
    made.need = (mla_requirements)MLA_INIT(mla_requirements);
    made.context = rig_context(num_threads, NULL);
    made.plan = rig_plan(made.context, caps);
    must(mla_plan_requirements(made.plan, &made.need, &err), &err);
    made.buffers = rig_buffers(&made.need);
    if (caps->kv_format == MLA_KV_FP8) {
        made.buffers.kv_scale = take_scale(0.013F);
    }
    if (caps->query_dtype == MLA_E4M3) {
        made.buffers.query_scale = take_scale(0.02F);
    }
    made.bound = rig_bound(&made.buffers);
    must(mla_bind(made.plan, &made.bound, &made.binding, &err), &err);
    return made;
}

void rig_close(rig *r)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_unbind(&r->binding);
    mla_plan_release(&r->plan);
    rig_bound_free(&r->bound);
    rig_buffers_free(&r->buffers);
    must(mla_context_destroy(&r->context, &err), &err);
}

enum { KEY = 1, QUERY = 2 };

static void fill_row(uint64_t seed, int kind, int64_t position, int32_t num, float *to)
{
    rng random = rng_of_seed(seed * 1000003 + (uint64_t)position * 4 + (uint64_t)kind);
    for (int32_t i = 0; i < num; i++) {
        to[i] = rng_f32(&random, -2.0F, 2.0F);
    }
}

static void shuffle(rng *random, int32_t *item, int32_t num)
{
    for (int32_t i = num - 1; i > 0; i--) {
        int32_t j = (int32_t)rng_between(random, 0, i);
        int32_t kept = item[i];
        item[i] = item[j];
        item[j] = kept;
    }
}

static int32_t nonsense(rng *random, int64_t num_pages)
{
    const int32_t words[] = {-1, (int32_t)num_pages, INT32_MAX, INT32_MIN};
    return words[rng_between(random, 0, 3)];
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t num_keys(const mla_caps *caps, const rig_request *request)
{
    int64_t keys = request->length > 0 ? request->length : 0;
    return smaller(keys, (int64_t)caps->table_width * caps->page_tokens);
}

static void wait(void)
{
    if (rig_is_on_gpu) {
        memory_wait();
    }
}

static void append_keys(const rig *r, const rig_request *request, const int32_t *table)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    int32_t width = r->caps.latent_dim + r->caps.rope_dim;
    int64_t num = num_keys(&r->caps, request);
    if (num == 0) {
        return;
    }
    float *rows = take((size_t)num * (size_t)width * sizeof *rows);
    int64_t *slots = take((size_t)num * sizeof *slots);
    for (int64_t i = 0; i < num; i++) {
        fill_row(request->seed, KEY, i, width, rows + i * width);
        slots[i] = (int64_t)table[i / r->caps.page_tokens] * r->caps.page_tokens +
                   i % r->caps.page_tokens;
    }
    mla_append_args args = MLA_INIT(mla_append_args);
    args.rows = rig_lend(rows, (size_t)(num * width) * sizeof *rows);
    args.slots = rig_lend(slots, (size_t)num * sizeof *slots);
    args.kv_scale = r->bound.kv_scale;
    args.kv_pool = (mla_out){bytes_of(r->bound.kv_pool), r->bound.kv_pool.bytes};
    args.num_rows = num;
    args.rows_dtype = MLA_F32;
    must(mla_append(r->plan, &args, (mla_stream){NULL}, &err), &err);
    wait();
    rig_lend_end(args.rows);
    rig_lend_end(args.slots);
    free(rows);
    free(slots);
}

static void write_query(const rig *r, const rig_request *request, int32_t row,
                        int32_t batch_row)
{
    int32_t num = r->caps.num_heads * (r->caps.latent_dim + r->caps.rope_dim);
    float *values = take((size_t)num * sizeof *values);
    fill_row(request->seed, QUERY, (int64_t)request->length - request->num_rows + row, num,
             values);
    char *to = bytes_of(r->buffers.query);
    for (int32_t i = 0; i < num; i++) {
        size_t at = (size_t)batch_row * (size_t)num + (size_t)i;
        uint16_t half = mlai_bf16_from_f32(values[i]);
        switch (r->caps.query_dtype) {
        case MLA_F32:
            memcpy(to + 4 * at, &values[i], 4);
            break;
        case MLA_BF16:
            memcpy(to + 2 * at, &half, 2);
            break;
        case MLA_E4M3:
            to[at] = (char)mlai_e4m3_from_f32(values[i] / 0.02F);
            break;
        }
    }
    free(values);
}

/* Returns how many pages are taken afterwards. */
static int32_t name_pages(rig *r, const rig_request *request, int32_t *table,
                          const int32_t *page, int32_t num_taken)
{
    int64_t keys = num_keys(&r->caps, request);
    for (int32_t t = 0; t < r->caps.table_width; t++) {
        bool is_used = (int64_t)t * r->caps.page_tokens < keys;
        assert_true(!is_used || num_taken < r->caps.num_pages);
        table[t] = is_used ? page[num_taken++] : nonsense(&r->random, r->caps.num_pages);
    }
    return num_taken;
}

enum { KV_POOL = 0 };

static void send_member(const rig *r, int i)
{
    mla_in from = member_of(&r->buffers, i);
    if (rig_is_on_gpu && from.bytes > 0) {
        memory_to(member_of(&r->bound, i).data, from.data, from.bytes);
    }
}

static void fetch_member(const rig *r, int i)
{
    mla_in to = member_of(&r->buffers, i);
    if (rig_is_on_gpu) {
        memory_from(bytes_of(to), member_of(&r->bound, i).data, to.bytes);
    }
}

void rig_fetch_pool(rig *r)
{
    wait();
    fetch_member(r, KV_POOL);
}

void rig_load(rig *r, const rig_request *request, int32_t num_requests)
{
    int32_t *page = take((size_t)r->caps.num_pages * sizeof *page);
    int32_t *table = bytes_of(r->buffers.block_table);
    int32_t *lens = bytes_of(r->buffers.context_lens);
    int32_t *starts = bytes_of(r->buffers.query_starts);
    int32_t next = 0;
    for (int32_t i = 0; i < r->caps.num_pages; i++) {
        page[i] = i;
    }
    shuffle(&r->random, page, (int32_t)r->caps.num_pages);
    memset(bytes_of(r->buffers.kv_pool), 0xff, r->buffers.kv_pool.bytes);
    memset(bytes_of(r->buffers.query), 0xff, r->buffers.query.bytes);
    send_member(r, KV_POOL);
    r->batch = (mla_batch)MLA_INIT(mla_batch);
    starts[0] = 0;
    for (int32_t q = 0; q < num_requests; q++) {
        int32_t *of = table + (int64_t)q * r->caps.table_width;
        next = name_pages(r, &request[q], of, page, next);
        append_keys(r, &request[q], of);
        for (int32_t i = 0; i < request[q].num_rows; i++) {
            write_query(r, &request[q], i, starts[q] + i);
        }
        lens[q] = request[q].length;
        starts[q + 1] = starts[q] + request[q].num_rows;
    }
    rig_fetch_pool(r);
    r->batch.num_requests = num_requests;
    r->batch.num_query_rows = starts[num_requests];
    r->batch.max_context_tokens = r->caps.max_context_tokens;
    free(page);
}

void rig_send(rig *r)
{
    memset(r->buffers.output.data, 0xff, r->buffers.output.bytes);
    memset(r->buffers.lse.data, 0xff, r->buffers.lse.bytes);
    memset(r->buffers.workspace.data, 0xff, r->buffers.workspace.bytes);
    for (int i = 0; i < NUM_MEMBERS; i++) {
        send_member(r, i);
    }
}

void rig_fetch(rig *r)
{
    wait();
    fetch_member(r, FIRST_OUTPUT);
    fetch_member(r, FIRST_OUTPUT + 1);
}

void rig_run(rig *r)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    rig_send(r);
    must(mla_run(r->binding, &r->batch, (mla_stream){NULL}, &err), &err);
    rig_fetch(r);
}

void rig_replay(rig *r)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    rig_send(r);
    must(mla_replay(r->binding, (mla_stream){NULL}, &err), &err);
    rig_fetch(r);
}

size_t rig_out_bytes(const rig *r)
{
    return r->need.output.bytes / (size_t)r->caps.max_query_rows;
}

const void *rig_out(const rig *r, int32_t row)
{
    return (const char *)r->buffers.output.data + (size_t)row * rig_out_bytes(r);
}

const float *rig_lse(const rig *r, int32_t row)
{
    return (const float *)r->buffers.lse.data + (size_t)row * (size_t)r->caps.num_heads;
}

int rig_same_bits(const rig *a, int32_t a_row, const rig *b, int32_t b_row)
{
    return memcmp(rig_out(a, a_row), rig_out(b, b_row), rig_out_bytes(a)) == 0 &&
           memcmp(rig_lse(a, a_row), rig_lse(b, b_row),
                  (size_t)a->caps.num_heads * sizeof(float)) == 0;
}
