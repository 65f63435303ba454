/* base/convert against the definitions of tests/support/rounding: every code of both
 * formats, and floats on, between and beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "base/convert.h"
#include "support/random.h"
#include "support/rounding.h"

static void check_e4m3(float value)
{
    uint8_t code = mlai_e4m3_from_f32(value);
    uint8_t wanted = rounding_nearest_e4m3(value);
    if (code != wanted) {
        fail_msg("%a gave the e4m3 code 0x%02x, and 0x%02x is nearest", (double)value, code,
                 wanted);
    }
}

static void check_bf16(float value)
{
    uint16_t bits = mlai_bf16_from_f32(value);
    if (isnan(value)) {
        assert_true(rounding_is_bf16_of_nan(bits, value));
        return;
    }
    uint16_t wanted = rounding_nearest_bf16(value);
    if (bits != wanted) {
        fail_msg("%a gave the bf16 0x%04x, and 0x%04x is nearest", (double)value, bits,
                 wanted);
    }
}

static void every_bf16_has_its_value_and_comes_back(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits <= 0xffff; bits++) {
        float value = mlai_f32_from_bf16((uint16_t)bits);
        double wanted = rounding_value_of_bf16((uint16_t)bits);
        if (isnan(wanted)) {
            assert_true(isnan(value));
            assert_int_equal(mlai_bf16_from_f32(value), bits | 0x40);
        } else {
            assert_true((double)value == wanted && !signbit(value) == !signbit(wanted));
            assert_int_equal(mlai_bf16_from_f32(value), bits);
        }
    }
}

/* Each upper half with each lower half at which rounding turns, so every tie and both its
 * neighbours, for every exponent, both signs, subnormals, infinities and NaN. */
static void f32_rounds_to_the_nearest_bf16_around_every_value(void **state)
{
    (void)state;
    static const uint32_t lower[] = {0, 1, 0x4000, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
    for (uint32_t upper = 0; upper <= 0xffff; upper++) {
        for (size_t i = 0; i < sizeof lower / sizeof lower[0]; i++) {
            check_bf16(mlai_f32_of_bits(upper << 16 | lower[i]));
        }
    }
}

static void bf16_ties_go_to_even_and_the_top_rounds_to_infinity(void **state)
{
    (void)state;
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0x3f808000)), 0x3f80);
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0x3f818000)), 0x3f82);
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0x00008000)), 0x0000);
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0x00008001)), 0x0001);
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0x7f7f7fff)), 0x7f7f);
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0x7f7f8000)), 0x7f80);
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0x7f800001)), 0x7fc0);
    assert_int_equal(mlai_bf16_from_f32(mlai_f32_of_bits(0xffa50001)), 0xffe5);
}

static void every_e4m3_code_has_its_value_and_comes_back(void **state)
{
    (void)state;
    int num_nan = 0;
    for (int code = 0; code < 256; code++) {
        float value = mlai_f32_from_e4m3((uint8_t)code);
        double wanted = rounding_value_of_e4m3((uint8_t)code);
        if (isnan(wanted)) {
            num_nan++;
            assert_true(isnan(value));
        } else {
            assert_true((double)value == wanted);
        }
        assert_int_equal(signbit(value) != 0, code >= 128);
        assert_int_equal(mlai_e4m3_from_f32(value), code);
    }
    assert_int_equal(num_nan, 2);
    assert_true(mlai_f32_from_e4m3(0x7e) == 448.0F && mlai_f32_from_e4m3(1) == 0x1p-9F);
}

/* Each value, each midpoint of two neighbours, and the floats beside both. */
static void f32_rounds_to_the_nearest_e4m3_around_every_value(void **state)
{
    (void)state;
    for (uint8_t code = 0; code < 0x7e; code++) {
        float low = (float)rounding_value_of_e4m3(code);
        float high = (float)rounding_value_of_e4m3((uint8_t)(code + 1));
        float middle = (low + high) / 2; /* exact */
        const float around[] = {low, middle, high};
        for (int i = 0; i < 3; i++) {
            for (int sign = -1; sign <= 1; sign += 2) {
                float value = (float)sign * around[i];
                check_e4m3(value);
                check_e4m3(nextafterf(value, INFINITY));
                check_e4m3(nextafterf(value, -INFINITY));
            }
        }
        uint8_t even = code % 2 == 0 ? code : (uint8_t)(code + 1);
        assert_int_equal(mlai_e4m3_from_f32(middle), even);
    }
}

static void e4m3_saturates_at_448_and_keeps_the_sign_of_nan(void **state)
{
    (void)state;
    static const float beyond[] = {448.0F, 455.0F,  456.0F, 463.9F, 464.0F,
                                   464.1F, 1000.0F, 1e30F,  3.4e38F};
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        assert_int_equal(mlai_e4m3_from_f32(beyond[i]), 0x7e);
        assert_int_equal(mlai_e4m3_from_f32(-beyond[i]), 0xfe);
    }
    assert_int_equal(mlai_e4m3_from_f32(INFINITY), 0x7e);
    assert_int_equal(mlai_e4m3_from_f32(-INFINITY), 0xfe);
    assert_int_equal(mlai_e4m3_from_f32(mlai_f32_of_bits(0x7f800001)), 0x7f);
    assert_int_equal(mlai_e4m3_from_f32(mlai_f32_of_bits(0xffc00000)), 0xff);
    assert_int_equal(mlai_e4m3_from_f32(0.0F), 0x00);
    assert_int_equal(mlai_e4m3_from_f32(-0.0F), 0x80);
    assert_int_equal(mlai_e4m3_from_f32(0x1p-10F), 0x00); /* a tie: 0 is even */
    assert_int_equal(mlai_e4m3_from_f32(-0x1.8p-9F), 0x82);
    assert_int_equal(mlai_e4m3_from_f32(0x1p-149F), 0x00);
}

/* An even sweep of all float bit patterns, from a random start. */
static void a_sweep_of_all_floats_rounds_to_nearest_in_both_formats(void **state)
{
    (void)state;
    enum { STRIDE = 9973 }; /* a prime: all low bits occur; 430,000 floats */
    rng random = rng_start("sweep of floats");
    uint64_t start = (uint64_t)rng_between(&random, 0, STRIDE - 1);
    for (uint64_t bits = start; bits <= UINT32_MAX; bits += STRIDE) {
        check_e4m3(mlai_f32_of_bits((uint32_t)bits));
        check_bf16(mlai_f32_of_bits((uint32_t)bits));
    }
}

/* The range that e4m3 has values in is a small part of all floats: a denser sweep of it. */
static void a_sweep_of_the_range_of_e4m3_rounds_to_nearest(void **state)
{
    (void)state;
    enum { STRIDE = 487 };
    uint32_t first = mlai_bits_of_f32(0x1p-11F);
    uint32_t last = mlai_bits_of_f32(512.0F);
    for (uint32_t bits = first; bits <= last; bits += STRIDE) {
        check_e4m3(mlai_f32_of_bits(bits));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16_has_its_value_and_comes_back),
        cmocka_unit_test(f32_rounds_to_the_nearest_bf16_around_every_value),
        cmocka_unit_test(bf16_ties_go_to_even_and_the_top_rounds_to_infinity),
        cmocka_unit_test(every_e4m3_code_has_its_value_and_comes_back),
        cmocka_unit_test(f32_rounds_to_the_nearest_e4m3_around_every_value),
        cmocka_unit_test(e4m3_saturates_at_448_and_keeps_the_sign_of_nan),
        cmocka_unit_test(a_sweep_of_all_floats_rounds_to_nearest_in_both_formats),
        cmocka_unit_test(a_sweep_of_the_range_of_e4m3_rounds_to_nearest),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
