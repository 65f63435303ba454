/* The shapes of the CUDA bench: they are the peers', and their work is counted as the peers
 * count it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attention/count.h"
#include "attention/geometry.h"
#include "cli/bench_rotation.h"

static json_t *peers_rows(json_t **all)
{
    json_error_t error;
    *all = json_load_file(TEST_MODELS "/../bench/peers-h200.json", 0, &error);
    assert_non_null(*all);
    return json_object_get(*all, "rows");
}

static void every_shape_has_a_peers_row(void **state)
{
    (void)state;
    json_t *all = NULL;
    json_t *rows = peers_rows(&all);
    assert_int_equal(json_array_size(rows), BENCH_NUM_SHAPES);
    for (size_t i = 0; i < BENCH_NUM_SHAPES; i++) {
        const json_t *name = json_object_get(json_array_get(rows, i), "name");
        assert_string_equal(bench_shapes[i].name, json_string_value(name));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(bench_shapes[i].name, bench_shapes[j].name);
        }
    }
    json_decref(all);
}

static void a_name_says_what_the_shape_is(void **state)
{
    (void)state;
    for (int i = 0; i < BENCH_NUM_SHAPES; i++) {
        const bench_shape *shape = &bench_shapes[i];
        char name[64];
        int length = snprintf(name, sizeof name, "h%d q%d b%d L", (int)shape->heads,
                              (int)shape->rows, (int)shape->requests);
        (void)snprintf(name + length, sizeof name - (size_t)length,
                       shape->length ? "%d%s" : "mix", (int)shape->length,
                       shape->num_pages ? "w" : "");
        assert_string_equal(shape->name, name);
        assert_in_range(shape->requests, 1, BENCH_MAX_REQUESTS);
    }
}

/* max(bytes / 4.3e12, operations / 790e12), as the peers' table says it. */
static double roof_us(const bench_shape *shape)
{
    int32_t lens[BENCH_MAX_REQUESTS];
    int32_t starts[BENCH_MAX_REQUESTS + 1] = {0};
    mla_caps caps = bench_shape_caps(shape, MLA_KV_BF16);
    for (int32_t i = 0; i < shape->requests; i++) {
        lens[i] = bench_shape_length(shape, i);
        starts[i + 1] = starts[i] + shape->rows;
    }
    mlai_attention_count count =
        mlai_attention_count_of(&caps, shape->requests, lens, starts);
    double sides = (double)caps.max_query_rows * caps.num_heads *
                   (2.0 * caps.latent_dim + caps.rope_dim) * 2;
    return fmax((count.bytes + sides) / 4.3e6, count.flops / 790e6);
}

static void work_is_counted_as_the_peers_count_it(void **state)
{
    (void)state;
    json_t *all = NULL;
    json_t *rows = peers_rows(&all);
    for (size_t i = 0; i < BENCH_NUM_SHAPES; i++) {
        double peers =
            json_number_value(json_object_get(json_array_get(rows, i), "roof_us"));
        double ours = roof_us(&bench_shapes[i]);
        if (fabs(ours - peers) > 0.051 + 1e-3 * peers) {
            fail_msg("%s: %.2f us, and the peers say %.1f", bench_shapes[i].name, ours,
                     peers);
        }
    }
    json_decref(all);
}

static void a_rotation_passes_600_mb_or_128_tables(void **state)
{
    (void)state;
    for (int i = 0; i < BENCH_NUM_SHAPES; i++) {
        const bench_shape *shape = &bench_shapes[i];
        double page_bytes =
            BENCH_PAGE_TOKENS * (double)mla_kv_row_bytes(MLA_KV_FP8, 512, 64);
        int32_t turns = bench_rotation_turns(shape, MLA_KV_FP8);
        double bytes = (double)bench_shape_pages(shape) * page_bytes * turns;
        assert_in_range(turns, 1, BENCH_MAX_TURNS);
        assert_true(bytes >= 600e6 || turns == BENCH_MAX_TURNS);
        assert_true(bytes >= 300e6);
        assert_true(bench_rotation_pages(shape, MLA_KV_FP8) >=
                    bench_shape_pages(shape) * turns);
    }
}

static void every_shape_is_one_that_a_plan_can_have(void **state)
{
    (void)state;
    const mla_kv_format formats[] = {MLA_KV_BF16, MLA_KV_FP8, MLA_KV_FP8_G128};
    for (int i = 0; i < BENCH_NUM_SHAPES; i++) {
        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
            mlai_geometry geometry;
            mla_caps caps = bench_shape_caps(&bench_shapes[i], formats[f]);
            caps.num_pages = bench_rotation_pages(&bench_shapes[i], formats[f]);
            assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_has_a_peers_row),
        cmocka_unit_test(a_name_says_what_the_shape_is),
        cmocka_unit_test(work_is_counted_as_the_peers_count_it),
        cmocka_unit_test(a_rotation_passes_600_mb_or_128_tables),
        cmocka_unit_test(every_shape_is_one_that_a_plan_can_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
