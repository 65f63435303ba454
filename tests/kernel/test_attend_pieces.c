/* test_attend_pieces.c - what the AVX2 kernel is made of: conversions over all codes, the
 * exponential over its whole domain, a step of the softmax, the loops of the FMA rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the three above */
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention/cpu/fma_rate.h"
#include "attention/cpu/kernels.h"
#include "attention/cpu/rows_avx2.h"
#include "attention/cpu/softmax_avx2.h"
#include "attention/row_layout.h"
#include "base/convert.h"
#include "device/cpu.h"
#include "support/levels.h"
#include "support/random.h"

enum { ALIGN = 32, TILE = MLAI_TILE_TOKENS };

static void assert_same_float(float got, float expected)
{
    if (isnan(expected)) {
        assert_true(isnan(got));
    } else {
        assert_int_equal(mlai_bits_of_f32(got), mlai_bits_of_f32(expected));
    }
}

static void every_bf16_becomes_its_value(void **state)
{
    (void)state;
    enum { NUM = 65536 };
    uint16_t *codes = malloc(NUM * sizeof *codes);
    float *values = aligned_alloc(ALIGN, NUM * sizeof *values);
    assert_non_null(codes);
    assert_non_null(values);
    for (int i = 0; i < NUM; i++) {
        codes[i] = (uint16_t)i;
    }
    mlai_numbers_decode_avx2(MLA_BF16, (const unsigned char *)codes, NUM, 1.0F, values);
    for (int i = 0; i < NUM; i++) {
        assert_same_float(values[i], mlai_f32_from_bf16((uint16_t)i));
    }
    free(codes);
    free(values);
}

static void every_e4m3_becomes_its_value_times_the_scale(void **state)
{
    (void)state;
    enum { NUM = 256 };
    static const float scales[] = {1.0F, 0.0371F, 0x1.fffffep-100F, 0x1p-149F, 3.0e30F};
    unsigned char codes[NUM];
    _Alignas(ALIGN) float values[NUM];
    for (int i = 0; i < NUM; i++) {
        codes[i] = (unsigned char)i;
    }
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        mlai_numbers_decode_avx2(MLA_E4M3, codes, NUM, scales[s], values);
        for (int i = 0; i < NUM; i++) {
            assert_same_float(values[i], mlai_f32_from_e4m3((uint8_t)i) * scales[s]);
        }
    }
}

static void rows_of_every_format_at_any_address_decode_alike(void **state)
{
    (void)state;
    enum { D = 256, R = 48, MAX_BYTES = 4 * (D + R) + 16 };
    rng random = rng_start("rows_of_every_format_at_any_address_decode_alike");
    static unsigned char bytes[MAX_BYTES];
    _Alignas(ALIGN) static float got[D + R];
    static float expected[D + R];
    for (int format = MLA_KV_BF16; format <= MLA_KV_F32; format++) {
        for (size_t shift = 0; shift < 16; shift++) {
            for (size_t i = 0; i < MAX_BYTES; i++) {
                bytes[i] = (unsigned char)rng_u64(&random);
            }
            mlai_kv_view kv = {.latent_dim = D,
                               .rope_dim = R,
                               .format = (mla_kv_format)format,
                               .scale = 0.0371F};
            mlai_row_decode_avx2(&kv, bytes + shift, got);
            mlai_row_decode(kv.format, D, R, bytes + shift, kv.scale, expected);
            for (int i = 0; i < D + R; i++) {
                assert_same_float(got[i], expected[i]);
            }
        }
    }
}

/* exp of 64 numbers <= 0, by a softmax whose top is 0 already. */
static void exp_of(float *x)
{
    float top = 0.0F;
    float weight = 0.0F;
    (void)mlai_softmax_step_avx2(x, ~UINT64_C(0), 1.0F, &top, &weight);
    assert_true(top == 0.0F);
}

static double ulp_of(double value)
{
    int exponent;
    (void)frexp(value, &exponent);
    return ldexp(1.0, exponent - 24);
}

/* Every STEP-th float of [-87.33, -0], from a place that changes with the seed. */
static void exp_is_within_its_bound(void **state)
{
    (void)state;
    enum { STEP = 97 };
    rng random = rng_start("exp_is_within_its_bound");
    const uint32_t last = mlai_bits_of_f32(-0x1.5d589ep+6F);
    uint32_t bits = 0x80000000U + (uint32_t)rng_between(&random, 0, STEP - 1);
    double worst = 0;
    _Alignas(ALIGN) float p[TILE];
    while (bits <= last) {
        float x[TILE];
        for (int i = 0; i < TILE; i++) {
            x[i] = p[i] = mlai_f32_of_bits(bits <= last ? bits : last);
            bits += STEP;
        }
        exp_of(p);
        for (int i = 0; i < TILE; i++) {
            double exact = exp((double)x[i]);
            worst = fmax(worst, fabs((double)p[i] - exact) / ulp_of(exact));
        }
    }
    print_message("worst error of exp: %.3f ulp\n", worst);
    assert_true(worst < 1.25);
    assert_true(worst > 0.4); /* no f32 function does better: the check would be blind */
}

static void exp_ends_where_it_must(void **state)
{
    (void)state;
    _Alignas(ALIGN) float x[TILE] = {0.0F, -0.0F, -INFINITY, NAN, -88.0F, -1e30F};
    exp_of(x);
    assert_true(x[0] == 1.0F && x[1] == 1.0F);
    assert_true(x[2] == 0.0F);
    assert_true(isnan(x[3]));
    assert_true(x[4] == 0.0F && x[5] == 0.0F);
}

static void a_softmax_step_counts_only_what_it_is_told(void **state)
{
    (void)state;
    _Alignas(ALIGN) float score[TILE];
    for (int i = 0; i < TILE; i++) {
        score[i] = i % 2 ? NAN : 2.0F;
    }
    float top = 0.0F;
    float weight = 3.0F;
    float shrink =
        mlai_softmax_step_avx2(score, UINT64_C(0x5555555555555555), 0.5F, &top, &weight);
    assert_true(top == 1.0F);
    assert_true(fabsf(shrink - expf(-1.0F)) < 1e-7F);
    assert_true(fabsf(weight - (3.0F * expf(-1.0F) + 32.0F)) < 1e-5F);
    for (int i = 0; i < TILE; i++) {
        assert_true(score[i] == (i % 2 ? 0.0F : 1.0F));
    }
}

static void an_uncounted_tile_leaves_everything_as_it_was(void **state)
{
    (void)state;
    _Alignas(ALIGN) float score[TILE] = {5.0F, NAN};
    float top = -INFINITY;
    float weight = 0.0F;
    (void)mlai_softmax_step_avx2(score, 0, 1.0F, &top, &weight);
    assert_true(top == -INFINITY && weight == 0.0F && score[0] == 0.0F);
    top = 2.0F;
    weight = 7.0F;
    assert_true(mlai_softmax_step_avx2(score, 0, 1.0F, &top, &weight) == 1.0F);
    assert_true(top == 2.0F && weight == 7.0F);
}

/* A loop that the compiler removed would give a rate that knows no number of rounds. Each
 * of the 12 sums of a lane goes to the same limit. */
static void assert_spins(float (*spin)(int64_t num_rounds, float start), float lanes)
{
    float settled = lanes * MLAI_FMA_CHAINS / (1.0F - 0.9990234375F);
    assert_true(spin(1, 1.0F) != spin(2, 1.0F));
    assert_true(fabsf(spin(100000, 1.0F) / settled - 1.0F) < 1e-3F);
}

static void the_fma_loop_does_its_rounds(void **state)
{
    (void)state;
    assert_spins(mlai_fma_spin_avx2, 1.0F);
}

static void the_portable_loop_does_its_rounds(void **state)
{
    (void)state;
    assert_spins(mlai_fma_spin_c, MLAI_FMA_LANES_C);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16_becomes_its_value),
        cmocka_unit_test(every_e4m3_becomes_its_value_times_the_scale),
        cmocka_unit_test(rows_of_every_format_at_any_address_decode_alike),
        cmocka_unit_test(exp_is_within_its_bound),
        cmocka_unit_test(exp_ends_where_it_must),
        cmocka_unit_test(a_softmax_step_counts_only_what_it_is_told),
        cmocka_unit_test(an_uncounted_tile_leaves_everything_as_it_was),
        cmocka_unit_test(the_fma_loop_does_its_rounds),
    };
    const struct CMUnitTest portable_tests[] = {
        cmocka_unit_test(the_portable_loop_does_its_rounds),
    };
    levels suite = levels_start("attend_pieces");
    if (levels_run(&suite, "c", true)) {
        suite.num_failed += cmocka_run_group_tests(portable_tests, NULL, NULL);
    }
    if (levels_run(&suite, "avx2", mlai_cpu_isa() & MLA_ISA_AVX2)) {
        suite.num_failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return levels_finish(&suite);
}
