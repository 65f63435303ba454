/* Offsets into the pool are 64-bit: pages on both sides of 2^31 and 2^32 bytes, in a pool
 * that is mapped but hardly ever touched, or on a GPU real memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "support/device_memory.h"
#include "support/gpu.h"
#include "support/must.h"
#include "support/rig.h"

enum { NUM_TOKENS = 40, PAGES_USED = 3 };

static mla_caps caps_of(mla_kv_format format, int64_t num_pages)
{
    mla_caps caps = rig_caps();
    caps.kv_format = format;
    caps.num_pages = num_pages;
    caps.max_context_tokens = NUM_TOKENS;
    caps.table_width = PAGES_USED;
    return caps;
}

/* Keys of the rig's request 0, written once more where `table` says. */
static void append_again(mla_plan *plan, const rig *from, const int32_t *table,
                         mla_out pool)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    const int32_t *old = from->buffers.block_table.data;
    size_t stride = from->need.kv_pool.bytes / (size_t)from->caps.num_pages;
    size_t row_bytes = stride / (size_t)from->caps.page_tokens;
    for (int64_t i = 0; i < NUM_TOKENS; i++) {
        /* f32 rows are their own storage format: what was stored can be appended again */
        const unsigned char *row = from->buffers.kv_pool.data;
        row += (size_t)old[i / 16] * stride + (size_t)(i % 16) * row_bytes;
        int64_t slot = (int64_t)table[i / 16] * 16 + i % 16;
        mla_append_args args = MLA_INIT(mla_append_args);
        args.rows = rig_lend(row, row_bytes);
        args.slots = rig_lend(&slot, sizeof slot);
        args.kv_pool = pool;
        args.num_rows = 1;
        args.rows_dtype = from->caps.kv_format == MLA_KV_F32 ? MLA_F32 : MLA_BF16;
        must(mla_append(plan, &args, (mla_stream){NULL}, &err), &err);
        if (rig_is_on_gpu) {
            memory_wait();
        }
        rig_lend_end(args.rows);
        rig_lend_end(args.slots);
    }
}

static void *take_pool(size_t bytes)
{
    if (rig_is_on_gpu) {
        return memory_take(bytes, NULL);
    }
    void *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(pool != MAP_FAILED);
    return pool;
}

static void give_pool(void *pool, size_t bytes)
{
    if (rig_is_on_gpu) {
        memory_give(pool);
    } else {
        assert_int_equal(munmap(pool, bytes), 0);
    }
}

static void expect_same_far_away(const rig *near, int32_t first_page)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_caps caps = caps_of(near->caps.kv_format, (int64_t)first_page + PAGES_USED);
    mla_requirements need = MLA_INIT(mla_requirements);
    mla_context *context = rig_context(1, NULL);
    mla_plan *plan = rig_plan(context, &caps);
    must(mla_plan_requirements(plan, &need, &err), &err);
    void *pool = take_pool(need.kv_pool.bytes);
    mla_requirements small = need;
    small.kv_pool.bytes = 64;
    mla_buffers own = rig_buffers(&small);
    int32_t *table = (int32_t *)(uintptr_t)own.block_table.data;
    for (int32_t i = 0; i < PAGES_USED; i++) {
        table[i] = first_page + (i + 1) % PAGES_USED;
    }
    append_again(plan, near, table, (mla_out){pool, need.kv_pool.bytes});
    mla_buffers bound = rig_bound(&own);
    mla_buffers buffers = bound;
    buffers.kv_pool = (mla_in){pool, need.kv_pool.bytes};
    buffers.query = near->bound.query;
    buffers.context_lens = near->bound.context_lens;
    buffers.query_starts = near->bound.query_starts;
    mla_binding *binding = NULL;
    must(mla_bind(plan, &buffers, &binding, &err), &err);
    must(mla_run(binding, &near->batch, (mla_stream){NULL}, &err), &err);
    mla_unbind(&binding); /* waits */
    if (rig_is_on_gpu) {
        memory_from(own.output.data, bound.output.data, own.output.bytes);
    }
    assert_memory_equal(own.output.data, rig_out(near, 0), rig_out_bytes(near));
    rig_bound_free(&bound);
    rig_buffers_free(&own);
    give_pool(pool, need.kv_pool.bytes);
    mla_plan_release(&plan);
    must(mla_context_destroy(&context, &err), &err);
}

static void pages_beyond_2_to_the_31_bytes_are_found(void **state)
{
    (void)state;
    const mla_kv_format formats[] = {MLA_KV_BF16, MLA_KV_F32};
    for (int f = 0; f < (rig_is_on_gpu ? 1 : 2); f++) {
        mla_caps caps = caps_of(formats[f], 9);
        rig near = rig_open(&caps, 1, 1);
        const rig_request request = {rng_default_seed(), NUM_TOKENS, 1};
        rig_load(&near, &request, 1);
        rig_run(&near);
        int64_t stride = (int64_t)(near.need.kv_pool.bytes / 9);
        int64_t last_near = ((int64_t)1 << 31) / stride; /* holds byte 2^31 or ends there */
        expect_same_far_away(&near, (int32_t)last_near);
        expect_same_far_away(&near, (int32_t)(last_near + 1));
        expect_same_far_away(&near, (int32_t)(((int64_t)1 << 32) / stride + 1));
        rig_close(&near);
    }
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_beyond_2_to_the_31_bytes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_suite("large_pool", run_suite);
}
