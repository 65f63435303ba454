/* Caps: every field has a rule, and every rule a sentence with the value in it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "attention/geometry.h"
#include "support/rig.h"

#define REFUSES(field, value, words)                                                       \
    do {                                                                                   \
        mla_caps bad = rig_extend_caps(3, 8, 100);                                         \
        bad.field = (value);                                                               \
        expect_refusal(&bad, #field, (words));                                             \
    } while (0)

#define ACCEPTS(field, value)                                                              \
    do {                                                                                   \
        mla_caps good = rig_extend_caps(3, 8, 100);                                        \
        mlai_geometry geometry;                                                            \
        mla_error err;                                                                     \
        good.field = (value);                                                              \
        if (mlai_geometry_of(&good, &geometry, &err) != MLA_OK) {                          \
            fail_msg("%s %s: %s", #field, #value, err.message);                            \
        }                                                                                  \
    } while (0)

static void expect_refusal(const mla_caps *caps, const char *field, const char *words)
{
    mla_error err;
    mlai_geometry geometry;
    assert_int_equal(mlai_geometry_of(caps, &geometry, &err), MLA_ERR_ARGUMENT);
    if (!strstr(err.message, field) || !strstr(err.message, words)) {
        fail_msg("\"%s\" does not say \"%s\" and \"%s\"", err.message, field, words);
    }
}

static void formats_outside_their_enums_are_refused(void **state)
{
    (void)state;
    REFUSES(mode, (mla_mode)0, "is 0");
    REFUSES(mode, (mla_mode)4, "is 4");
    REFUSES(kv_format, (mla_kv_format)0, "is 0");
    REFUSES(kv_format, (mla_kv_format)5, "is 5");
    REFUSES(query_dtype, (mla_dtype)0, "is 0");
    REFUSES(query_dtype, (mla_dtype)9, "is 9");
    REFUSES(output_dtype, MLA_E4M3, "is 3");
}

static void impossible_shapes_are_refused(void **state)
{
    (void)state;
    REFUSES(num_heads, 0, "is 0");
    REFUSES(num_heads, -1, "is -1");
    REFUSES(num_heads, INT32_MAX, "is 2147483647");
    REFUSES(latent_dim, 0, "is 0");
    REFUSES(latent_dim, -64, "is -64");
    REFUSES(latent_dim, 96, "is 96");
    REFUSES(rope_dim, -16, "is -16");
    REFUSES(rope_dim, 8, "is 8");
    REFUSES(page_tokens, 0, "is 0");
    REFUSES(page_tokens, 2, "is 2");
    REFUSES(page_tokens, -16, "is -16");
    mla_caps groups = rig_caps();
    groups.kv_format = MLA_KV_FP8_G128;
    groups.latent_dim = 192;
    expect_refusal(&groups, "latent_dim", "is 192, not a multiple of 128");
    ACCEPTS(num_heads, 1);
    ACCEPTS(num_heads, 20);
    ACCEPTS(latent_dim, 64);
    ACCEPTS(rope_dim, 16);
    ACCEPTS(page_tokens, 944);
}

static void impossible_masks_are_refused(void **state)
{
    (void)state;
    REFUSES(causal, 2, "is 2");
    REFUSES(causal, -1, "is -1");
    REFUSES(window, -1, "is -1");
    REFUSES(softmax_scale, 0.0F, "is 0");
    REFUSES(softmax_scale, -1.0F, "is -1");
    REFUSES(softmax_scale, NAN, "nan");
    REFUSES(softmax_scale, INFINITY, "is inf");
    ACCEPTS(causal, 0);
    ACCEPTS(window, INT32_MAX);
}

static void impossible_capacities_are_refused(void **state)
{
    (void)state;
    REFUSES(max_requests, 0, "is 0");
    REFUSES(max_query_rows, 0, "is 0");
    REFUSES(max_rows_per_request, 0, "is 0");
    REFUSES(max_rows_per_request, 9, "is 9, not in 1 to 8");
    REFUSES(max_context_tokens, 0, "is 0");
    REFUSES(max_context_tokens, (int64_t)1 << 31, "is 2147483648");
    REFUSES(table_width, 0, "is 0");
    REFUSES(table_width, 6,
            "is 6: 96 tokens in pages of 16, and max_context_tokens is 100");
    REFUSES(interleave, -1, "is -1");
    REFUSES(interleave, 3, "is 3");
    REFUSES(num_pages, 0, "is 0");
    REFUSES(num_pages, (int64_t)1 << 31, "is 2147483648");
    REFUSES(page_stride_bytes, 16, "is 16");
    REFUSES(page_stride_bytes, -16, "is -16");
    REFUSES(page_stride_bytes, 16 * 192 * 4 + 8, "is 12296");
    ACCEPTS(max_requests, 100);
    ACCEPTS(interleave, 16);
    ACCEPTS(page_stride_bytes, 16 * 192 * 4 + 16);
    mla_caps decode = rig_caps();
    decode.max_rows_per_request = 2;
    expect_refusal(&decode, "max_rows_per_request", "is 2, not in 1 to 1 (mode is decode)");
}

static void sizes_that_no_memory_has_are_refused(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(3, 8, 100);
    caps.num_pages = INT32_MAX;
    caps.page_stride_bytes = INT64_MAX / 16 * 16;
    expect_refusal(&caps, "num_pages", "is 2147483647 pages of 9223372036854775792");
    caps = rig_extend_caps(3, INT32_MAX, 100);
    caps.num_heads = 1 << 16;
    caps.latent_dim = 1 << 16;
    expect_refusal(&caps, "max_query_rows", "is 2147483647");
    caps = rig_extend_caps(3, 8, 100);
    caps.max_requests = INT32_MAX;
    caps.table_width = INT32_MAX;
    caps.page_tokens = 1;
    ACCEPTS(max_requests, 3);
    mlai_geometry geometry;
    assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_ERR_ARGUMENT);
}

static void a_row_has_the_bytes_of_its_format(void **state)
{
    (void)state;
    assert_int_equal(mla_kv_row_bytes(MLA_KV_BF16, 512, 64), 1152);
    assert_int_equal(mla_kv_row_bytes(MLA_KV_FP8, 512, 64), 576);
    assert_int_equal(mla_kv_row_bytes(MLA_KV_FP8_G128, 512, 64), 656);
    assert_int_equal(mla_kv_row_bytes(MLA_KV_F32, 512, 64), 2304);
    assert_int_equal(mla_kv_row_bytes(MLA_KV_BF16, 1024, 64), 2176);
    assert_int_equal(mla_kv_row_bytes((mla_kv_format)0, 512, 64), 0);
    assert_int_equal(mla_kv_row_bytes(MLA_KV_BF16, -1, 64), 0);
    assert_int_equal(mla_kv_row_bytes(MLA_KV_BF16, 512, -1), 0);
    assert_int_equal(mla_kv_row_bytes(MLA_KV_FP8_G128, 448, 64), 0);
}

static void requirements_follow_from_the_caps(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(3, 8, 100);
    mlai_geometry geometry;
    mla_requirements need;
    caps.page_stride_bytes = 16 * 192 * 4 + 192;
    caps.output_dtype = MLA_BF16;
    caps.query_dtype = MLA_BF16;
    assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_OK);
    mlai_geometry_requirements(&geometry, MLA_SPACE_HOST, &need);
    assert_int_equal(need.kv_pool.bytes, caps.num_pages * caps.page_stride_bytes);
    assert_int_equal(need.query.bytes, 8 * 4 * 192 * 2);
    assert_int_equal(need.output.bytes, 8 * 4 * 128 * 2);
    assert_int_equal(need.lse.bytes, 8 * 4 * 4);
    assert_int_equal(need.block_table.bytes, 3 * 7 * 4);
    assert_int_equal(need.context_lens.bytes, 3 * 4);
    assert_int_equal(need.query_starts.bytes, 4 * 4);
    assert_int_equal(geometry.table_tokens, 112);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_outside_their_enums_are_refused),
        cmocka_unit_test(impossible_shapes_are_refused),
        cmocka_unit_test(impossible_masks_are_refused),
        cmocka_unit_test(impossible_capacities_are_refused),
        cmocka_unit_test(sizes_that_no_memory_has_are_refused),
        cmocka_unit_test(a_row_has_the_bytes_of_its_format),
        cmocka_unit_test(requirements_follow_from_the_caps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
