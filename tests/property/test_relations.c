/* Relations that hold for attention whatever the numbers are, through the public API, on a CPU
 * with f32 keys and on a GPU with bf16 ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/merge_parts.h"
#include "attention/oracle.h"
#include "base/convert.h"
#include "support/gpu.h"
#include "support/rig.h"

enum { D = 128, R = 64, H = 4, P = 16 };

static const float *out_of(const rig *r, int32_t row, int32_t head)
{
    return (const float *)rig_out(r, row) + (size_t)head * D;
}

/* How far an output and an lse may be off: a GPU rounds weights to bf16, and values are below
 * 2; two such outputs are compared. */
static double out_tolerance(void)
{
    return rig_is_on_gpu ? 4 * 0x1p-8 : 2e-5;
}

static double lse_tolerance(void)
{
    return rig_is_on_gpu ? 1e-4 : 2e-5;
}

/* A number of a key or a query, which are f32 or bf16. */
static float number_at(const void *row, mla_dtype dtype, int32_t i)
{
    return dtype == MLA_F32 ? ((const float *)row)[i]
                            : mlai_f32_from_bf16(((const uint16_t *)row)[i]);
}

static void set_number(void *row, mla_dtype dtype, int32_t i, float value)
{
    if (dtype == MLA_F32) {
        ((float *)row)[i] = value;
    } else {
        ((uint16_t *)row)[i] = mlai_bf16_from_f32(value);
    }
}

static mla_dtype key_dtype(const rig *r)
{
    return r->caps.kv_format == MLA_KV_F32 ? MLA_F32 : MLA_BF16;
}

static size_t row_bytes(const rig *r)
{
    return (D + R) * (size_t)(key_dtype(r) == MLA_F32 ? 4 : 2);
}

/* The buffers are the test's own memory; the API only reads them. Keys and queries have the
 * same dtype. */
static void *query_of(const rig *r, int32_t row, int32_t head)
{
    uintptr_t data = (uintptr_t)r->buffers.query.data;
    return (char *)data + ((size_t)row * H + (size_t)head) * row_bytes(r);
}

static void *key_of(const rig *r, int32_t request, int64_t position)
{
    const int32_t *table = r->buffers.block_table.data;
    int64_t page = table[request * r->caps.table_width + position / P];
    uintptr_t pool = (uintptr_t)r->buffers.kv_pool.data;
    return (char *)pool + (size_t)(page * P + position % P) * row_bytes(r);
}

static float key_value(const rig *r, int32_t request, int64_t position, int32_t i)
{
    return number_at(key_of(r, request, position), key_dtype(r), i);
}

static float query_value(const rig *r, int32_t row, int32_t head, int32_t i)
{
    return number_at(query_of(r, row, head), r->caps.query_dtype, i);
}

static bool is_near(float a, float b, double bound)
{
    return fabs((double)a - (double)b) <= bound;
}

static float score_of(const rig *r, int32_t head, int64_t position)
{
    double score = 0;
    for (int32_t i = 0; i < D + R; i++) {
        score += (double)query_value(r, 0, head, i) * (double)key_value(r, 0, position, i);
    }
    return (float)(score * (double)r->caps.softmax_scale);
}

static void of_one_key_the_output_is_its_value(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 2, 1);
    const rig_request request = {rng_default_seed(), 1, 1};
    rig_load(&r, &request, 1);
    rig_run(&r);
    for (int32_t head = 0; head < H; head++) {
        for (int32_t i = 0; i < D; i++) {
            assert_true(out_of(&r, 0, head)[i] == key_value(&r, 0, 0, i));
        }
        assert_true(is_near(rig_lse(&r, 0)[head], score_of(&r, head, 0), 1e-4));
    }
    rig_close(&r);
}

/* Keys n .. 2n - 1 become those of 0 .. n - 1. */
static void every_key_twice_adds_ln_2(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig once = rig_open(&caps, 2, 1);
    rig twice = rig_open(&caps, 2, 2);
    uint64_t seed = rng_default_seed();
    const rig_request single = {seed, 300, 1};
    const rig_request doubled = {seed, 600, 1};
    rig_load(&once, &single, 1);
    rig_load(&twice, &doubled, 1);
    for (int64_t i = 0; i < 300; i++) {
        memcpy(key_of(&twice, 0, 300 + i), key_of(&twice, 0, i), row_bytes(&twice));
    }
    memcpy(query_of(&twice, 0, 0), query_of(&once, 0, 0), H * row_bytes(&once));
    rig_run(&once);
    rig_run(&twice);
    for (int32_t head = 0; head < H; head++) {
        assert_true(is_near(rig_lse(&twice, 0)[head], rig_lse(&once, 0)[head] + logf(2.0F),
                            lse_tolerance()));
        for (int32_t i = 0; i < D; i++) {
            assert_true(is_near(out_of(&once, 0, head)[i], out_of(&twice, 0, head)[i],
                                out_tolerance()));
        }
    }
    rig_close(&once);
    rig_close(&twice);
}

static void a_column_equal_in_all_keys_only_shifts_the_lse(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig plain = rig_open(&caps, 1, 1);
    rig moved = rig_open(&caps, 1, 2);
    const rig_request request = {rng_default_seed(), 700, 1};
    rig *const rigs[] = {&plain, &moved};
    for (int i = 0; i < 2; i++) {
        rig_load(rigs[i], &request, 1);
        for (int64_t key = 0; key < request.length; key++) {
            set_number(key_of(rigs[i], 0, key), key_dtype(rigs[i]), D + 3, 0.75F);
        }
    }
    for (int32_t head = 0; head < H; head++) {
        set_number(query_of(&moved, 0, head), caps.query_dtype, D + 3,
                   query_value(&plain, 0, head, D + 3) + 5.0F);
    }
    rig_run(&plain);
    rig_run(&moved);
    for (int32_t head = 0; head < H; head++) {
        double change = (double)query_value(&moved, 0, head, D + 3) -
                        (double)query_value(&plain, 0, head, D + 3);
        double shift = change * 0.75 * (double)caps.softmax_scale;
        double seen = (double)rig_lse(&moved, 0)[head] - (double)rig_lse(&plain, 0)[head];
        assert_true(fabs(seen - shift) < lse_tolerance());
        for (int32_t i = 0; i < D; i++) {
            assert_true(is_near(out_of(&plain, 0, head)[i], out_of(&moved, 0, head)[i],
                                out_tolerance()));
        }
    }
    rig_close(&plain);
    rig_close(&moved);
}

static void the_output_lies_between_the_visible_values(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    caps.window = 40;
    rig r = rig_open(&caps, 1, 1);
    const rig_request request = {rng_default_seed(), 513, 1};
    rig_load(&r, &request, 1);
    rig_run(&r);
    for (int32_t i = 0; i < D; i++) {
        float low = INFINITY;
        float high = -INFINITY;
        for (int64_t key = request.length - caps.window; key < request.length; key++) {
            low = fminf(low, key_value(&r, 0, key, i));
            high = fmaxf(high, key_value(&r, 0, key, i));
        }
        for (int32_t head = 0; head < H; head++) {
            double value = (double)out_of(&r, 0, head)[i];
            assert_true(value >= (double)low - out_tolerance() / 2 &&
                        value <= (double)high + out_tolerance() / 2);
        }
    }
    rig_close(&r);
}

/* The halves [0, n) and [n, 2n) as two requests of their own, merged. */
static void merging_two_halves_is_the_whole(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    rig r = rig_open(&caps, 2, 1);
    uint64_t seed = rng_default_seed();
    const rig_request requests[] = {{seed, 1000, 1}, {seed, 500, 1}, {seed + 1, 500, 1}};
    rig_load(&r, requests, 3);
    for (int64_t i = 0; i < 500; i++) {
        memcpy(key_of(&r, 2, i), key_of(&r, 0, 500 + i), row_bytes(&r));
    }
    for (int32_t row = 1; row < 3; row++) {
        memcpy(query_of(&r, row, 0), query_of(&r, 0, 0), H * row_bytes(&r));
    }
    rig_run(&r);
    for (int32_t head = 0; head < H; head++) {
        float part[2 * D];
        float merged[D];
        float lse;
        const float part_lse[] = {rig_lse(&r, 1)[head], rig_lse(&r, 2)[head]};
        memcpy(part, out_of(&r, 1, head), D * sizeof(float));
        memcpy(part + D, out_of(&r, 2, head), D * sizeof(float));
        mlai_merge_parts(part, part_lse, 2, D, merged, &lse);
        assert_true(is_near(lse, rig_lse(&r, 0)[head], lse_tolerance()));
        for (int32_t i = 0; i < D; i++) {
            assert_true(is_near(merged[i], out_of(&r, 0, head)[i], out_tolerance()));
        }
    }
    rig_close(&r);
}

static void an_empty_row_is_zero_with_no_weight(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(4, 12, 100);
    rig r = rig_open(&caps, 2, 1);
    /* none, negative, fewer keys than rows (its first two rows are empty), and no rows */
    const rig_request requests[] = {{1, 0, 2}, {2, INT32_MIN, 1}, {3, 3, 5}, {4, 50, 0}};
    rig_load(&r, requests, 4);
    rig_run(&r);
    for (int32_t row = 0; row < 8; row++) {
        bool is_empty = row < 5;
        for (int32_t head = 0; head < H; head++) {
            assert_int_equal(rig_lse(&r, row)[head] == -INFINITY, is_empty);
            for (int32_t i = 0; i < D && is_empty; i++) {
                uint32_t bits;
                memcpy(&bits, &out_of(&r, row, head)[i], sizeof bits);
                assert_int_equal(bits, 0);
            }
        }
    }
    rig_close(&r);
}

static void a_length_beyond_the_table_is_cut_to_it(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(1, 3, 100);
    rig cut = rig_open(&caps, 2, 1);
    rig full = rig_open(&caps, 2, 2);
    const rig_request exact = {5, 112, 3}; /* what 7 pages of 16 hold */
    rig_load(&full, &exact, 1);
    rig_load(&cut, &exact, 1);
    *(int32_t *)(uintptr_t)cut.buffers.context_lens.data = INT32_MAX;
    rig_run(&full);
    rig_run(&cut);
    for (int32_t row = 0; row < 3; row++) {
        assert_true(rig_same_bits(&full, row, &cut, row));
    }
    rig_close(&cut);
    rig_close(&full);
}

/* Page numbers that are none mask their tokens: the result is that of the request without
 * those keys, which the oracle gives. */
static void pages_outside_the_pool_mask_their_tokens(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(2, 4, 400);
    rig r = rig_open(&caps, 2, 1);
    const int32_t bad[] = {-1, (int32_t)caps.num_pages, INT32_MAX, INT32_MIN};
    const rig_request requests[] = {{rng_default_seed(), 390, 2}, {9, 40, 1}};
    rig_load(&r, requests, 2);
    int32_t *table = (int32_t *)(uintptr_t)r.buffers.block_table.data;
    for (int32_t i = 0; i < 4; i++) {
        table[i * 5] = bad[i]; /* the first page among them */
    }
    for (int32_t t = 0; t < 3; t++) {
        table[caps.table_width + t] = bad[t]; /* nothing of the second request is left */
    }
    rig_run(&r);
    double out[3 * H * D];
    double lse[3 * H];
    mlai_oracle_out want = {out, lse, NULL, NULL};
    mlai_oracle_attend(&r.caps, &r.buffers, &r.batch, &want);
    for (int32_t i = 0; i < 2 * H; i++) {
        assert_true(fabs((double)rig_lse(&r, 0)[i] - lse[i]) < 1e-4);
    }
    for (int32_t i = 0; i < 2 * H * D; i++) {
        assert_true(fabs((double)out_of(&r, 0, 0)[i] - out[i]) <
                    (rig_is_on_gpu ? out_tolerance() : 1e-4));
    }
    for (int32_t head = 0; head < H; head++) {
        assert_true(rig_lse(&r, 2)[head] == -INFINITY);
        assert_true(out_of(&r, 2, head)[D - 1] == 0.0F);
    }
    rig_close(&r);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_key_the_output_is_its_value),
        cmocka_unit_test(every_key_twice_adds_ln_2),
        cmocka_unit_test(a_column_equal_in_all_keys_only_shifts_the_lse),
        cmocka_unit_test(the_output_lies_between_the_visible_values),
        cmocka_unit_test(merging_two_halves_is_the_whole),
        cmocka_unit_test(an_empty_row_is_zero_with_no_weight),
        cmocka_unit_test(a_length_beyond_the_table_is_cut_to_it),
        cmocka_unit_test(pages_outside_the_pool_mask_their_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    print_message("relations: MLA_TEST_SEED=%llu\n",
                  (unsigned long long)rng_default_seed());
    return gpu_suite("relations", run_suite);
}
