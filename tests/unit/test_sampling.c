/* Sampling: what each filter keeps, in which order they apply, the distribution that is
 * drawn from, and what the random numbers depend on. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "model/sampling.h"

enum { VOCAB = 8, DRAWS = 40000 };

/* log of 5, 1, 20, 10, 4, 30, 20, 10 percent */
static const double share[VOCAB] = {0.05, 0.01, 0.20, 0.10, 0.04, 0.30, 0.20, 0.10};

static void make_logits(double temperature, float logits[VOCAB])
{
    for (int i = 0; i < VOCAB; i++) {
        logits[i] = (float)(temperature * log(share[i]) + 3.0);
    }
}

/* counts: [VOCAB] of DRAWS draws at positions 0, 1, ... */
static void draw(const float *logits, const sampling_options *options, int *counts)
{
    sampling_candidate scratch[VOCAB];
    for (int i = 0; i < VOCAB; i++) {
        counts[i] = 0;
    }
    for (int64_t position = 0; position < DRAWS; position++) {
        int32_t id = sample_token(logits, VOCAB, options, position, scratch);
        assert_true(id >= 0 && id < VOCAB);
        counts[id]++;
    }
}

/* expected: [VOCAB] shares that add up to 1; what has none must not be drawn. The bound is
 * the 1 - 1e-6 quantile of chi-square with 7 degrees of freedom; the draws are fixed by the
 * seed, so the test does not flicker. */
static void check_distribution(const int *counts, const double *expected)
{
    double chi_square = 0.0;
    for (int i = 0; i < VOCAB; i++) {
        double mean = expected[i] * DRAWS;
        if (mean == 0.0) {
            assert_int_equal(counts[i], 0);
            continue;
        }
        chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    if (chi_square > 40.52) {
        fail_msg("chi-square %g over 40.52", chi_square);
    }
}

static void draws_follow_the_distribution_at_any_temperature(void **state)
{
    (void)state;
    const float temperatures[3] = {0.5F, 1.0F, 2.0F};
    for (int i = 0; i < 3; i++) {
        float logits[VOCAB];
        int counts[VOCAB];
        sampling_options options = {.temperature = temperatures[i],
                                    .seed = (uint64_t)i + 7};
        make_logits((double)temperatures[i], logits);
        draw(logits, &options, counts);
        check_distribution(counts, share);
    }
}

static void top_k_keeps_k_and_ties_go_to_the_lower_id(void **state)
{
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    sampling_options options = {.temperature = 1.0F, .top_k = 4, .seed = 3};
    const double kept[VOCAB] = {0, 0,           0.20 / 0.80, 0.10 / 0.80,
                                0, 0.30 / 0.80, 0.20 / 0.80, 0};
    make_logits(1.0, logits);
    logits[7] = logits[3]; /* equal to the bit */
    draw(logits, &options, counts);
    check_distribution(counts, kept);
}

static void top_p_keeps_the_token_that_crosses(void **state)
{
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    sampling_options options = {.temperature = 1.0F, .top_p = 0.55F, .seed = 4};
    const double kept[VOCAB] = {0, 0, 0.20 / 0.70, 0, 0, 0.30 / 0.70, 0.20 / 0.70, 0};
    make_logits(1.0, logits);
    draw(logits, &options, counts);
    check_distribution(counts, kept);
}

/* Of the three that top-k keeps, 30, 20 and 20 of 70, the first two are 0.71 of the mass;
 * of the whole they would be 0.5, and a third would be kept. */
static void top_p_counts_the_mass_that_top_k_left(void **state)
{
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    sampling_options options = {.temperature = 1.0F, .top_k = 3, .top_p = 0.6F, .seed = 5};
    const double kept[VOCAB] = {0, 0, 0.4, 0, 0, 0.6, 0, 0};
    make_logits(1.0, logits);
    draw(logits, &options, counts);
    check_distribution(counts, kept);
}

static void min_p_drops_what_is_below_a_share_of_the_best(void **state)
{
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    sampling_options options = {.temperature = 1.0F, .min_p = 0.5F, .seed = 6};
    const double kept[VOCAB] = {0, 0, 0.20 / 0.70, 0, 0, 0.30 / 0.70, 0.20 / 0.70, 0};
    make_logits(1.0, logits);
    draw(logits, &options, counts);
    check_distribution(counts, kept);
}

/* At temperature 2 the ratios shrink to their roots: 0.05 / 0.30 is above 0.16 squared. */
static void min_p_applies_after_the_temperature(void **state)
{
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    sampling_options options = {.temperature = 2.0F, .min_p = 0.4F, .seed = 6};
    make_logits(1.0, logits);
    draw(logits, &options, counts);
    assert_true(counts[0] > 0);
    assert_int_equal(counts[1], 0);
    assert_int_equal(counts[4], 0); /* sqrt(0.04 / 0.30) is 0.365 */
}

static void filters_that_keep_all_change_nothing(void **state)
{
    (void)state;
    float logits[VOCAB];
    int counts[VOCAB];
    sampling_options options = {
        .temperature = 1.0F, .top_k = VOCAB, .top_p = 1.0F, .min_p = 1e-6F, .seed = 8};
    make_logits(1.0, logits);
    draw(logits, &options, counts);
    check_distribution(counts, share);
}

static void temperature_0_takes_the_lowest_of_the_best(void **state)
{
    (void)state;
    const float logits[5] = {1.0F, 3.0F, 3.0F, -INFINITY, 3.0F};
    const float odd[3] = {NAN, 1.0F, 2.0F};
    sampling_candidate scratch[5];
    sampling_options options = {.temperature = 0.0F};
    assert_int_equal(sample_token(logits, 5, &options, 0, scratch), 1);
    assert_int_equal(sample_token(odd, 3, &options, 0, scratch), 2);
}

static void logits_that_are_not_finite_still_give_a_token(void **state)
{
    (void)state;
    const float rows[4][3] = {{NAN, NAN, NAN},
                              {-INFINITY, -INFINITY, -INFINITY},
                              {INFINITY, 0.0F, 0.0F},
                              {1.0F, NAN, -INFINITY}};
    sampling_candidate scratch[3];
    for (int i = 0; i < 4; i++) {
        for (int has_top_k = 0; has_top_k < 2; has_top_k++) {
            sampling_options options = {.temperature = 1.0F, .top_k = has_top_k ? 2 : 0};
            int32_t id = sample_token(rows[i], 3, &options, 1, scratch);
            assert_true(id >= 0 && id < 3);
            assert_true(i != 3 || id == 0);
        }
    }
}

static void draws_depend_on_seed_and_position_only(void **state)
{
    (void)state;
    float logits[VOCAB];
    sampling_candidate scratch[VOCAB];
    int num_by_seed = 0;
    int num_by_position = 0;
    make_logits(1.0, logits);
    for (int64_t position = 0; position < 1000; position++) {
        sampling_options one = {.temperature = 1.0F, .seed = 1};
        sampling_options two = {.temperature = 1.0F, .seed = 2};
        int32_t id = sample_token(logits, VOCAB, &one, position, scratch);
        assert_int_equal(id, sample_token(logits, VOCAB, &one, position, scratch));
        num_by_seed += id != sample_token(logits, VOCAB, &two, position, scratch);
        num_by_position += id != sample_token(logits, VOCAB, &one, position + 1, scratch);
    }
    assert_true(num_by_seed > 700); /* independent draws differ with 1 - sum of squares */
    assert_true(num_by_position > 700);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_follow_the_distribution_at_any_temperature),
        cmocka_unit_test(top_k_keeps_k_and_ties_go_to_the_lower_id),
        cmocka_unit_test(top_p_keeps_the_token_that_crosses),
        cmocka_unit_test(top_p_counts_the_mass_that_top_k_left),
        cmocka_unit_test(min_p_drops_what_is_below_a_share_of_the_best),
        cmocka_unit_test(min_p_applies_after_the_temperature),
        cmocka_unit_test(filters_that_keep_all_change_nothing),
        cmocka_unit_test(temperature_0_takes_the_lowest_of_the_best),
        cmocka_unit_test(logits_that_are_not_finite_still_give_a_token),
        cmocka_unit_test(draws_depend_on_seed_and_position_only),
    };
    return cmocka_run_group_tests_name("sampling", tests, NULL, NULL);
}
