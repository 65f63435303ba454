/* Who sees what, against its definition, for all small cases; splits, placement and merge
 * against theirs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "attention/merge_parts.h"
#include "attention/placement.h"
#include "attention/split.h"
#include "attention/visibility.h"
#include "support/random.h"

static void a_length_is_between_nothing_and_its_table(void **state)
{
    (void)state;
    assert_int_equal(mlai_visible_length(-1, 64), 0);
    assert_int_equal(mlai_visible_length(INT32_MIN, 64), 0);
    assert_int_equal(mlai_visible_length(0, 64), 0);
    assert_int_equal(mlai_visible_length(63, 64), 63);
    assert_int_equal(mlai_visible_length(64, 64), 64);
    assert_int_equal(mlai_visible_length(65, 64), 64);
    assert_int_equal(mlai_visible_length(INT32_MAX, 64), 64);
}

/* Whether row `row` sees key `key`, in the words of operator semantics: the last row sits on
 * the last key; a window keeps the last of what would be seen. */
static bool sees(int64_t length, int32_t num_rows, int32_t row, bool causal, int32_t window,
                 int64_t key)
{
    int64_t own = length - num_rows + row;
    int64_t last = causal ? own : length - 1;
    return key >= 0 && key < length && key <= last && (window == 0 || key > last - window);
}

static void every_small_case_sees_what_it_should(void **state)
{
    (void)state;
    enum { MAX_LENGTH = 9, MAX_ROWS = 6, MAX_WINDOW = 5 };
    int num_seen = 0;
    for (int length = 0; length <= MAX_LENGTH; length++) {
        for (int rows = 1; rows <= MAX_ROWS; rows++) {
            for (int i = 0; i < rows * (MAX_WINDOW + 1) * 2; i++) {
                int row = i % rows;
                int window = i / rows % (MAX_WINDOW + 1);
                bool causal = i / rows / (MAX_WINDOW + 1) != 0;
                mlai_key_range keys = mlai_visible_keys(length, rows, row, causal, window);
                for (int key = -2; key < MAX_LENGTH + 2; key++) {
                    bool is_in = key >= keys.begin && key < keys.end;
                    assert_int_equal(is_in, sees(length, rows, row, causal, window, key));
                    num_seen += is_in;
                }
            }
        }
    }
    assert_true(num_seen > 1000);
}

static void splits_are_few_and_lie_on_a_grid_of_the_own_length(void **state)
{
    (void)state;
    assert_int_equal(mlai_split_tokens(0), 512);
    assert_int_equal(mlai_split_tokens(8192), 512);
    assert_int_equal(mlai_split_tokens(8193), 1024);
    assert_int_equal(mlai_split_tokens(16384), 1024);
    assert_int_equal(mlai_split_tokens(16385), 2048);
    assert_int_equal(mlai_split_tokens((int64_t)1 << 40), (int64_t)1 << 36);
    for (int64_t end = 1; end < 70000; end++) {
        int64_t tokens = mlai_split_tokens(end);
        assert_true(tokens >= 512 && (tokens & (tokens - 1)) == 0);
        assert_true((end + tokens - 1) / tokens <= MLAI_MAX_SPLITS);
        assert_true(tokens >= mlai_split_tokens(end - 1));
    }
}

static void local_lengths_are_those_of_the_tokens(void **state)
{
    (void)state;
    const mlai_placement places[] = {{1, 1}, {2, 1}, {4, 4}, {16, 1}, {16, 16}, {3, 2}};
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        int64_t count[16] = {0};
        for (int64_t length = 0; length < 700; length++) {
            int64_t sum = 0;
            for (int32_t rank = 0; rank < places[p].num_ranks; rank++) {
                int64_t local = mlai_placement_local_length(places[p], rank, length);
                assert_int_equal(local, count[rank]);
                sum += local;
            }
            assert_int_equal(sum, length);
            int32_t owner = mlai_placement_owner(places[p], length);
            assert_int_equal(mlai_placement_local_index(places[p], length), count[owner]);
            count[owner]++;
        }
    }
}

static void placement_agrees_with_the_known_vectors(void **state)
{
    (void)state;
    const int64_t four[] = {12, 9, 8, 8};
    for (int32_t rank = 0; rank < 4; rank++) {
        assert_int_equal(mlai_placement_local_length((mlai_placement){4, 4}, rank, 37),
                         four[rank]);
    }
    for (int32_t rank = 0; rank < 16; rank++) {
        mlai_placement sixteen = {16, 1};
        assert_int_equal(mlai_placement_local_length(sixteen, rank, 1), rank == 0);
        assert_int_equal(mlai_placement_local_length(sixteen, rank, 1000000), 62500);
    }
    const int64_t verify[] = {4, 4, 5}; /* rows that see 8, 9 and 10 of two ranks' keys */
    for (int64_t row = 0; row < 3; row++) {
        assert_int_equal(mlai_placement_local_length((mlai_placement){2, 1}, 1, 8 + row),
                         verify[row]);
    }
}

static void merging_is_a_weighted_mean(void **state)
{
    (void)state;
    const float part[] = {1, 2, 3, 5, 7, 9};
    const float lse[] = {0, logf(3), -INFINITY};
    float out[2];
    float sum;
    mlai_merge_parts(part, lse, 2, 2, out, &sum);
    assert_true(fabsf(out[0] - 2.5F) < 1e-6F && fabsf(out[1] - 4.25F) < 1e-6F);
    assert_true(fabsf(sum - logf(4)) < 1e-6F);
}

static void a_part_without_weight_is_never_read(void **state)
{
    (void)state;
    const float part[] = {NAN, NAN, 3, 5};
    const float lse[] = {-INFINITY, 0.25F};
    float out[2];
    float sum;
    mlai_merge_parts(part, lse, 2, 2, out, &sum);
    assert_true(out[0] == 3.0F && out[1] == 5.0F && sum == 0.25F);
    mlai_merge_parts(part, lse, 1, 2, out, &sum);
    assert_true(out[0] == 0.0F && out[1] == 0.0F && sum == -INFINITY);
    mlai_merge_parts(part, lse, 0, 2, out, &sum);
    assert_true(out[0] == 0.0F && out[1] == 0.0F && sum == -INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_length_is_between_nothing_and_its_table),
        cmocka_unit_test(every_small_case_sees_what_it_should),
        cmocka_unit_test(splits_are_few_and_lie_on_a_grid_of_the_own_length),
        cmocka_unit_test(local_lengths_are_those_of_the_tokens),
        cmocka_unit_test(placement_agrees_with_the_known_vectors),
        cmocka_unit_test(merging_is_a_weighted_mean),
        cmocka_unit_test(a_part_without_weight_is_never_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
