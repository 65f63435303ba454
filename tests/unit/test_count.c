/* test_count.c - counted work against numbers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the three above */
#include <cmocka.h>

#include <stdint.h>

#include "attention/count.h"

static mla_caps caps_of(int32_t causal, int32_t window)
{
    return (mla_caps){.kv_format = MLA_KV_BF16,
                      .num_heads = 16,
                      .latent_dim = 512,
                      .rope_dim = 64,
                      .page_tokens = 16,
                      .table_width = 100,
                      .causal = causal,
                      .window = window};
}

static void decode_counts_every_key_once(void **state)
{
    (void)state;
    mla_caps caps = caps_of(1, 0);
    const int32_t lens[] = {1000, 0, -5};
    const int32_t starts[] = {0, 1, 2, 3};
    mlai_attention_count count = mlai_attention_count_of(&caps, 3, lens, starts);
    assert_true(count.pairs == 1000);
    assert_true(count.flops == 1000.0 * 16 * 2176);
    assert_true(count.bytes == 1000.0 * 1152);
}

static void rows_of_a_request_share_its_keys(void **state)
{
    (void)state;
    mla_caps caps = caps_of(1, 0);
    const int32_t lens[] = {10};
    const int32_t starts[] = {0, 3};
    mlai_attention_count count = mlai_attention_count_of(&caps, 1, lens, starts);
    assert_true(count.pairs == 8 + 9 + 10);
    assert_true(count.bytes == 10.0 * 1152);
}

static void a_window_and_a_short_table_bound_the_work(void **state)
{
    (void)state;
    mla_caps caps = caps_of(1, 4);
    const int32_t lens[] = {5000}; /* the table holds 1600 */
    const int32_t starts[] = {0, 2};
    mlai_attention_count count = mlai_attention_count_of(&caps, 1, lens, starts);
    assert_true(count.pairs == 4 + 4);
    assert_true(count.bytes == 5.0 * 1152);
}

static void no_query_rows_are_no_work(void **state)
{
    (void)state;
    mla_caps caps = caps_of(0, 0);
    const int32_t lens[] = {100};
    const int32_t starts[] = {0, 0};
    mlai_attention_count count = mlai_attention_count_of(&caps, 1, lens, starts);
    assert_true(count.pairs == 0 && count.flops == 0 && count.bytes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_counts_every_key_once),
        cmocka_unit_test(rows_of_a_request_share_its_keys),
        cmocka_unit_test(a_window_and_a_short_table_bound_the_work),
        cmocka_unit_test(no_query_rows_are_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
