/* mla_append writes what row_layout.h encodes, from f32 and from bf16 rows, and nothing
 * where a slot lies outside the pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/cpu/append_rows.h"
#include "attention/row_layout.h"
#include "base/convert.h"
#include "support/rig.h"

enum { D = 256, R = 48, WIDTH = D + R, NUM_ROWS = 9, NUM_PAGES = 3, PAGE = 16 };

static const int64_t slots[NUM_ROWS] = {0, 47, 17, -1, 48, INT64_MIN, INT64_MAX, 5, 5};

static mlai_geometry geometry_of(mla_kv_format format)
{
    mlai_geometry geometry;
    mla_caps caps = rig_caps();
    caps.kv_format = format;
    caps.latent_dim = D;
    caps.rope_dim = R;
    caps.num_pages = NUM_PAGES;
    caps.page_stride_bytes =
        (int64_t)(PAGE * mla_kv_row_bytes(format, D, R) / 16 * 16 + 32);
    assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_OK);
    return geometry;
}

/* Rows as f32 values that bf16 holds exactly, and the same as bf16. */
static void draw_rows(rng *random, float *rows, uint16_t *halves)
{
    for (int i = 0; i < NUM_ROWS * WIDTH; i++) {
        halves[i] = mlai_bf16_from_f32(rng_f32(random, -600.0F, 600.0F));
        rows[i] = mlai_f32_from_bf16(halves[i]);
    }
    memset(rows, 0, D / 2 * sizeof *rows); /* a group of zeros */
    memset(halves, 0, D / 2 * sizeof *halves);
}

static void write_expected(const mlai_geometry *geometry, const float *rows, float scale,
                           unsigned char *pool)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        if (slots[i] >= 0 && slots[i] < NUM_PAGES * PAGE) {
            mlai_row_encode(geometry->caps.kv_format, D, R, rows + (ptrdiff_t)i * WIDTH,
                            scale,
                            pool + (size_t)(slots[i] / PAGE) * geometry->page_stride_bytes +
                                (size_t)(slots[i] % PAGE) * geometry->row_bytes);
        }
    }
}

static void expect_append(mla_kv_format format, rng *random)
{
    static float rows[NUM_ROWS * WIDTH];
    static uint16_t halves[NUM_ROWS * WIDTH];
    const float scale = 1.7F;
    mlai_geometry geometry = geometry_of(format);
    size_t bytes = NUM_PAGES * geometry.page_stride_bytes;
    unsigned char *want = malloc(bytes);
    unsigned char *got = malloc(bytes);
    draw_rows(random, rows, halves);
    memset(want, 0xab, bytes);
    write_expected(&geometry, rows, format == MLA_KV_FP8 ? scale : 1.0F, want);
    for (int i = 0; i < 2; i++) {
        mla_append_args args = MLA_INIT(mla_append_args);
        args.rows = i == 0 ? (mla_in){rows, sizeof rows} : (mla_in){halves, sizeof halves};
        args.rows_dtype = i == 0 ? MLA_F32 : MLA_BF16;
        args.slots = (mla_in){slots, sizeof slots};
        args.kv_pool = (mla_out){got, bytes};
        args.num_rows = NUM_ROWS;
        if (format == MLA_KV_FP8) {
            args.kv_scale = (mla_in){&scale, sizeof scale};
        }
        memset(got, 0xab, bytes);
        mlai_cpu_append_rows(&geometry, &args);
        assert_memory_equal(got, want, bytes);
    }
    free(want);
    free(got);
}

static void rows_are_stored_as_their_format_says(void **state)
{
    (void)state;
    rng random = rng_start("append");
    expect_append(MLA_KV_F32, &random);
    expect_append(MLA_KV_BF16, &random);
    expect_append(MLA_KV_FP8, &random);
    expect_append(MLA_KV_FP8_G128, &random);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_stored_as_their_format_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
