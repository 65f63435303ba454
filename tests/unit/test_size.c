/* Sizes that do not fit are refused at the last value that does and the first that does not;
 * and the monotonic clock does not go back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/size.h"

static void sums_fit_up_to_the_largest_size(void **state)
{
    (void)state;
    size_t out = 0;
    assert_true(mlai_size_add(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    assert_true(mlai_size_add(SIZE_MAX, 0, &out) && out == SIZE_MAX);
    assert_false(mlai_size_add(SIZE_MAX, 1, &out));
    assert_false(mlai_size_add(SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, &out));
}

static void products_fit_up_to_the_largest_size(void **state)
{
    (void)state;
    size_t out = 1;
    assert_true(mlai_size_mul(0, SIZE_MAX, &out) && out == 0);
    assert_true(mlai_size_mul(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    assert_true(mlai_size_mul(SIZE_MAX / 3, 3, &out) && out == SIZE_MAX / 3 * 3);
    assert_false(mlai_size_mul(SIZE_MAX / 3 + 1, 3, &out));
    assert_false(mlai_size_mul((size_t)1 << 32, (size_t)1 << 32, &out));
}

static void rounding_up_reaches_the_next_multiple_or_is_refused(void **state)
{
    (void)state;
    size_t out = 0;
    for (size_t unit = 1; unit <= 64; unit *= 2) {
        for (size_t value = 0; value <= 3 * unit; value++) {
            assert_true(mlai_size_round_up(value, unit, &out));
            assert_true(out % unit == 0 && out >= value && out - value < unit);
        }
    }
    assert_true(mlai_size_round_up(SIZE_MAX - 63, 64, &out) && out == SIZE_MAX - 63);
    assert_false(mlai_size_round_up(SIZE_MAX - 62, 64, &out));
    assert_false(mlai_size_round_up(SIZE_MAX, 2, &out));
    assert_true(mlai_size_round_up(SIZE_MAX, 1, &out) && out == SIZE_MAX);
}

static void powers_of_two_are_those_with_one_bit(void **state)
{
    (void)state;
    assert_false(mlai_is_power_of_two(0));
    for (int bit = 0; bit < 64; bit++) {
        size_t power = (size_t)1 << bit;
        assert_true(mlai_is_power_of_two(power));
        assert_int_equal(mlai_is_power_of_two(power + 1), bit == 0);
        assert_int_equal(mlai_is_power_of_two(power - 1), bit == 1);
    }
}

static void ceiling_division_counts_a_started_part(void **state)
{
    (void)state;
    assert_int_equal(mlai_ceil_div(0, 7), 0);
    assert_int_equal(mlai_ceil_div(1, 7), 1);
    assert_int_equal(mlai_ceil_div(7, 7), 1);
    assert_int_equal(mlai_ceil_div(8, 7), 2);
    assert_true(mlai_ceil_div(INT64_MAX, 1) == INT64_MAX);
    assert_true(mlai_ceil_div(INT64_MAX, 2) == INT64_MAX / 2 + 1);
}

static void the_clock_does_not_go_back(void **state)
{
    (void)state;
    int64_t last = mlai_now_ns();
    assert_true(last > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = mlai_now_ns();
        assert_true(now >= last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_fit_up_to_the_largest_size),
        cmocka_unit_test(products_fit_up_to_the_largest_size),
        cmocka_unit_test(rounding_up_reaches_the_next_multiple_or_is_refused),
        cmocka_unit_test(powers_of_two_are_those_with_one_bit),
        cmocka_unit_test(ceiling_division_counts_a_started_part),
        cmocka_unit_test(the_clock_does_not_go_back),
    };
    return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
