/* Offsets into the pool are 64-bit: pages on both sides of 2^31 and 2^32 bytes, in a pool
 * that is mapped but hardly ever touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>

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
        args.rows = (mla_in){row, row_bytes};
        args.slots = (mla_in){&slot, sizeof slot};
        args.kv_pool = pool;
        args.num_rows = 1;
        args.rows_dtype = from->caps.kv_format == MLA_KV_F32 ? MLA_F32 : MLA_BF16;
        must(mla_append(plan, &args, (mla_stream){NULL}, &err), &err);
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
    void *pool = mmap(NULL, need.kv_pool.bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(pool != MAP_FAILED);
    mla_requirements small = need;
    small.kv_pool.bytes = 64;
    mla_buffers own = rig_buffers(&small);
    mla_buffers buffers = own;
    buffers.kv_pool = (mla_in){pool, need.kv_pool.bytes};
    buffers.query = near->buffers.query;
    buffers.context_lens = near->buffers.context_lens;
    buffers.query_starts = near->buffers.query_starts;
    int32_t *table = (int32_t *)(uintptr_t)own.block_table.data;
    for (int32_t i = 0; i < PAGES_USED; i++) {
        table[i] = first_page + (i + 1) % PAGES_USED;
    }
    append_again(plan, near, table, (mla_out){pool, need.kv_pool.bytes});
    mla_binding *binding = NULL;
    must(mla_bind(plan, &buffers, &binding, &err), &err);
    must(mla_run(binding, &near->batch, (mla_stream){NULL}, &err), &err);
    assert_memory_equal(own.output.data, rig_out(near, 0), rig_out_bytes(near));
    mla_unbind(&binding);
    rig_buffers_free(&own);
    assert_int_equal(munmap(pool, need.kv_pool.bytes), 0);
    mla_plan_release(&plan);
    must(mla_context_destroy(&context, &err), &err);
}

static void pages_beyond_2_to_the_31_bytes_are_found(void **state)
{
    (void)state;
    const mla_kv_format formats[] = {MLA_KV_F32, MLA_KV_BF16};
    for (int f = 0; f < 2; f++) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_beyond_2_to_the_31_bytes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
