/* Rotary positions: plain and YaRN frequencies against values worked out by hand, and the
 * rotation in both orders of pairs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/rope.h"

static const rope_config yarn = {
    .theta = 10000.0,
    .is_interleaved = true,
    .is_yarn = true,
    .factor = 40.0,
    .beta_fast = 32.0,
    .beta_slow = 1.0,
    .mscale = 0.707,
    .mscale_all_dim = 0.707,
    .original_max_positions = 4096,
};

static void plain_frequencies_fall_by_a_constant_ratio(void **state)
{
    (void)state;
    rope_config config = {.theta = 10000.0};
    double inv_freq[32];
    rope_frequencies(&config, 64, inv_freq);
    for (int i = 0; i < 32; i++) {
        assert_true(fabs(inv_freq[i] * pow(10.0, i / 8.0) - 1.0) < 1e-12);
    }
    assert_true(rope_magnitude(&config) == 1.0F);
}

/* corr(32) = 64 ln(4096 / (64 pi)) / (2 ln 10^4) = 10.47 -> low 10;
 * corr(1) = 64 ln(4096 / (2 pi)) / (2 ln 10^4) = 22.51 -> high 23. */
static void yarn_keeps_fast_waves_and_stretches_slow_ones(void **state)
{
    (void)state;
    double inv_freq[32];
    rope_frequencies(&yarn, 64, inv_freq);
    for (int i = 0; i < 32; i++) {
        double plain = pow(10000.0, -2.0 * i / 64.0);
        double ramp = i <= 10 ? 0.0 : (i >= 23 ? 1.0 : (i - 10) / 13.0);
        double expected = plain / 40.0 * ramp + plain * (1.0 - ramp);
        assert_true(fabs(inv_freq[i] / expected - 1.0) < 1e-12);
    }
}

static void yarn_survives_a_ramp_of_no_width(void **state)
{
    (void)state;
    rope_config config = yarn;
    double inv_freq[8];
    config.beta_fast = 1e-9; /* both ends beyond the last pair */
    config.beta_slow = 1e-9;
    config.original_max_positions = 1 << 20;
    rope_frequencies(&config, 16, inv_freq);
    for (int i = 0; i < 8; i++) {
        assert_true(isfinite(inv_freq[i]) && inv_freq[i] > 0.0);
    }
}

static void yarn_magnitude_is_the_ratio_of_both_mscales(void **state)
{
    (void)state;
    rope_config config = yarn;
    assert_true(rope_magnitude(&config) == 1.0F);
    config.mscale_all_dim = 0.0; /* m(40, 0) is 1 */
    assert_true(fabs((double)rope_magnitude(&config) - 1.2608037774) < 1e-6);
    config.mscale = 1.0;
    assert_true(fabs((double)rope_magnitude(&config) - 1.3688879454) < 1e-6);
    config.factor = 1.0; /* no stretching, no magnitude */
    assert_true(rope_magnitude(&config) == 1.0F);
}

static void angles_are_exact_at_far_positions(void **state)
{
    (void)state;
    double inv_freq[2] = {1.0, 0.001};
    float angles[4];
    int64_t position = 163839;
    rope_angles(inv_freq, 4, 2.0F, position, angles);
    assert_true(fabs((double)angles[0] - 2.0 * cos((double)position)) < 1e-6);
    assert_true(fabs((double)angles[1] - 2.0 * sin((double)position)) < 1e-6);
    assert_true(fabs((double)angles[2] - 2.0 * cos((double)position * 0.001)) < 1e-6);
    assert_true(fabs((double)angles[3] - 2.0 * sin((double)position * 0.001)) < 1e-6);
}

static void pairs_are_neighbours_or_half_a_width_apart(void **state)
{
    (void)state;
    const float angles[4] = {0.0F, 1.0F, -1.0F, 0.0F}; /* a quarter turn, half a turn */
    float neighbours[4] = {1.0F, 2.0F, 3.0F, 4.0F};
    float halves[4] = {1.0F, 2.0F, 3.0F, 4.0F};
    rope_rotate(angles, 4, true, neighbours);
    rope_rotate(angles, 4, false, halves);
    const float turned_neighbours[4] = {-2.0F, 1.0F, -3.0F, -4.0F};
    const float turned_halves[4] = {-3.0F, -2.0F, 1.0F, -4.0F};
    for (int i = 0; i < 4; i++) {
        assert_true(neighbours[i] == turned_neighbours[i]);
        assert_true(halves[i] == turned_halves[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_frequencies_fall_by_a_constant_ratio),
        cmocka_unit_test(yarn_keeps_fast_waves_and_stretches_slow_ones),
        cmocka_unit_test(yarn_survives_a_ramp_of_no_width),
        cmocka_unit_test(yarn_magnitude_is_the_ratio_of_both_mscales),
        cmocka_unit_test(angles_are_exact_at_far_positions),
        cmocka_unit_test(pairs_are_neighbours_or_half_a_width_apart),
    };
    return cmocka_run_group_tests_name("rope", tests, NULL, NULL);
}
