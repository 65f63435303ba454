/* The tests' own tools: random numbers that replay, and suites that may not skip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/levels.h"
#include "support/random.h"

static void a_seed_draws_the_same_numbers_again(void **state)
{
    (void)state;
    assert_int_equal(setenv("MLA_TEST_SEED", "0x1234", 1), 0);
    rng first = rng_start("first");
    rng second = rng_of_seed(0x1234);
    for (int i = 0; i < 100; i++) {
        assert_true(rng_u64(&first) == rng_u64(&second));
    }
    assert_int_equal(unsetenv("MLA_TEST_SEED"), 0);
    assert_true(rng_default_seed() != rng_default_seed());
}

/* The first outputs of xoshiro256** from the state {1, 2, 3, 4}, worked out by hand:
 * rotl(2 * 5, 7) * 9 = 11520; the next state's s[1] is 0. */
static void the_generator_is_the_published_one(void **state)
{
    (void)state;
    rng random = {{1, 2, 3, 4}};
    assert_true(rng_u64(&random) == 11520);
    assert_true(rng_u64(&random) == 0);
    assert_true(rng_u64(&random) == 1509978240);
}

static void draws_stay_in_their_range_and_reach_its_ends(void **state)
{
    (void)state;
    rng random = rng_start("ranges");
    int seen[7] = {0};
    for (int i = 0; i < 2000; i++) {
        int64_t drawn = rng_between(&random, -3, 3);
        assert_true(drawn >= -3 && drawn <= 3);
        seen[drawn + 3]++;
        double unit = rng_unit(&random);
        assert_true(unit >= 0.0 && unit < 1.0);
        float value = rng_f32(&random, -2.0F, 5.0F);
        assert_true(value >= -2.0F && value <= 5.0F);
    }
    for (int i = 0; i < 7; i++) {
        assert_true(seen[i] > 0);
    }
    assert_true(rng_between(&random, 5, 5) == 5);
    (void)rng_between(&random, INT64_MIN, INT64_MAX);
}

static void normal_draws_have_mean_0_and_deviation_1(void **state)
{
    (void)state;
    enum { NUM = 20000 };
    rng random = rng_start("normal");
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < NUM; i++) {
        double x = rng_normal(&random);
        sum += x;
        squares += x * x;
    }
    double mean = sum / NUM; /* its deviation is 0.007: 0.06 is more than 8 of them */
    assert_true(mean > -0.06 && mean < 0.06);
    double variance = squares / NUM - mean * mean;
    assert_true(variance > 0.9 && variance < 1.1);
}

static levels suite_of(bool has_c, bool has_avx2, int num_failed)
{
    levels suite = levels_start("suite");
    assert_int_equal(levels_run(&suite, "c", has_c), has_c);
    assert_int_equal(levels_run(&suite, "avx2", has_avx2), has_avx2);
    suite.num_failed = num_failed;
    return suite;
}

static void a_required_level_that_is_skipped_fails_the_suite(void **state)
{
    (void)state;
    levels both = suite_of(true, true, 0);
    levels only_c = suite_of(true, false, 0);
    assert_int_equal(levels_judge(&both, "c,avx2"), 0);
    assert_int_equal(levels_judge(&only_c, NULL), 0);
    assert_int_equal(levels_judge(&only_c, ""), 0);
    assert_int_equal(levels_judge(&only_c, "c"), 0);
    assert_int_equal(levels_judge(&only_c, "c,avx2"), 1);
    assert_int_equal(levels_judge(&only_c, "avx2"), 1);
    assert_int_equal(levels_judge(&only_c, "avx2,c"), 1);
    assert_int_equal(levels_judge(&both, "c,avx22"),
                     1); /* a slip must not require nothing */
    assert_int_equal(levels_judge(&both, "avx"), 1);
}

static void a_suite_that_ran_nothing_or_failed_is_a_failure(void **state)
{
    (void)state;
    levels nothing = suite_of(false, false, 0);
    levels empty = levels_start("empty");
    levels failed = suite_of(true, true, 256); /* an exit status would wrap to 0 */
    assert_int_equal(levels_judge(&nothing, NULL), 1);
    assert_int_equal(levels_judge(&empty, NULL), 1);
    assert_int_equal(levels_judge(&failed, NULL), 1);
}

static void levels_can_be_left_out_but_not_silently(void **state)
{
    (void)state;
    assert_int_equal(setenv("MLA_TEST_LEVELS", "avx2", 1), 0);
    levels suite = levels_start("suite");
    assert_false(levels_run(&suite, "c", true));
    assert_true(levels_run(&suite, "avx2", true));
    assert_int_equal(levels_judge(&suite, "avx2"), 0);
    assert_int_equal(levels_judge(&suite, "c,avx2"), 1);
    assert_int_equal(setenv("MLA_TEST_LEVELS", "avx", 1), 0); /* a slip runs nothing */
    levels slipped = levels_start("slipped");
    assert_false(levels_run(&slipped, "avx2", true));
    assert_int_equal(levels_judge(&slipped, NULL), 1);
    assert_int_equal(unsetenv("MLA_TEST_LEVELS"), 0);
}

static void a_level_is_required_where_it_is_named(void **state)
{
    (void)state;
    const char *given = getenv("MLA_REQUIRE");
    char *kept = given ? strdup(given) : NULL;
    assert_int_equal(setenv("MLA_REQUIRE", "c,sm80", 1), 0);
    assert_true(levels_requires("sm80"));
    assert_false(levels_requires("sm8"));
    assert_false(levels_requires("nvrtc"));
    assert_int_equal(setenv("MLA_REQUIRE", "", 1), 0);
    assert_false(levels_requires("sm80"));
    assert_int_equal(unsetenv("MLA_REQUIRE"), 0);
    assert_false(levels_requires("sm80"));
    assert_int_equal(kept ? setenv("MLA_REQUIRE", kept, 1) : 0, 0);
    free(kept);
}

static void cases_are_cut_to_what_is_asked_for(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("MLA_TEST_CASES"), 0);
    assert_int_equal(test_cases(130), 130);
    assert_int_equal(setenv("MLA_TEST_CASES", "7", 1), 0);
    assert_int_equal(test_cases(130), 7);
    assert_int_equal(test_cases(5), 5);
    assert_int_equal(setenv("MLA_TEST_CASES", "no", 1),
                     0); /* what is no number cuts nothing */
    assert_int_equal(test_cases(130), 130);
    assert_int_equal(setenv("MLA_TEST_CASES", "0", 1), 0);
    assert_int_equal(test_cases(130), 130);
    assert_int_equal(unsetenv("MLA_TEST_CASES"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_draws_the_same_numbers_again),
        cmocka_unit_test(the_generator_is_the_published_one),
        cmocka_unit_test(draws_stay_in_their_range_and_reach_its_ends),
        cmocka_unit_test(normal_draws_have_mean_0_and_deviation_1),
        cmocka_unit_test(a_required_level_that_is_skipped_fails_the_suite),
        cmocka_unit_test(a_suite_that_ran_nothing_or_failed_is_a_failure),
        cmocka_unit_test(levels_can_be_left_out_but_not_silently),
        cmocka_unit_test(a_level_is_required_where_it_is_named),
        cmocka_unit_test(cases_are_cut_to_what_is_asked_for),
    };
    (void)unsetenv("MLA_TEST_LEVELS"); /* these test it */
    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
