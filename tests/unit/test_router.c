/* Which experts are chosen, and with what weights, in cases that tell the rules apart. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/convert.h"
#include "model/router.h"

enum { MAX_CHOSEN = 4, SCRATCH = 64 };

static model_config config_of(router_score score, router_choice choice, int32_t experts)
{
    return (model_config){
        .num_experts = experts,
        .experts_per_token = 2,
        .num_groups = 1,
        .top_groups = 1,
        .routed_scale = 1.0F,
        .score = score,
        .choice = choice,
    };
}

typedef struct choices {
    int32_t experts[MAX_CHOSEN];
    float weights[MAX_CHOSEN];
} choices;

static choices choose(const model_config *config, const float *logits, const float *bias)
{
    choices out = {{0}, {0}};
    float scratch[SCRATCH];
    vector bias_vector = {bias, MLA_F32, config->num_experts};
    assert_true(router_scratch_floats(config) <= SCRATCH);
    router_choose(config, logits, &bias_vector, scratch,
                  (router_choices){out.experts, out.weights});
    return out;
}

static float sigmoid(float x)
{
    return 1.0F / (1.0F + expf(-x));
}

static bool is_near(float a, float b)
{
    return fabsf(a - b) <= 1e-6F * (1.0F + fabsf(b));
}

static void greedy_takes_the_largest_softmax_values(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SOFTMAX, ROUTER_GREEDY, 4);
    const float logits[4] = {0.0F, logf(3.0F), logf(2.0F), logf(4.0F)};
    choices out = choose(&config, logits, NULL);
    assert_int_equal(out.experts[0], 3);
    assert_int_equal(out.experts[1], 1);
    assert_true(is_near(out.weights[0], 0.4F) && is_near(out.weights[1], 0.3F));
}

static void softmax_weights_are_scaled_or_normed_but_not_both(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SOFTMAX, ROUTER_GREEDY, 4);
    const float logits[4] = {0.0F, logf(3.0F), logf(2.0F), logf(4.0F)};
    config.routed_scale = 16.0F;
    assert_true(is_near(choose(&config, logits, NULL).weights[0], 6.4F));
    config.is_topk_normed = true;
    choices normed = choose(&config, logits, NULL);
    assert_true(is_near(normed.weights[0], 4.0F / 7.0F));
    assert_true(is_near(normed.weights[1], 3.0F / 7.0F));
}

static void equal_scores_go_to_the_lower_index(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SIGMOID, ROUTER_NOAUX_TC, 8);
    const float logits[8] = {0.0F, 1.0F, 0.0F, 1.0F, 1.0F, 0.0F, 1.0F, 0.0F};
    choices out = choose(&config, logits, NULL);
    assert_int_equal(out.experts[0], 1);
    assert_int_equal(out.experts[1], 3);
}

static void equal_groups_go_to_the_lower_index(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SOFTMAX, ROUTER_GROUP_LIMITED_GREEDY, 8);
    const float logits[8] = {0.0F};
    config.num_groups = 4;
    config.top_groups = 1;
    choices out = choose(&config, logits, NULL);
    assert_int_equal(out.experts[0], 0);
    assert_int_equal(out.experts[1], 1);
}

static void bias_chooses_but_does_not_weigh(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SIGMOID, ROUTER_NOAUX_TC, 4);
    const float logits[4] = {2.0F, 1.0F, 0.0F, -1.0F};
    const float bias[4] = {-1.0F, 0.0F, 0.0F, 1.0F};
    choices out = choose(&config, logits, bias);
    assert_int_equal(out.experts[0], 3);
    assert_int_equal(out.experts[1], 1);
    assert_true(is_near(out.weights[0], sigmoid(-1.0F)));
    assert_true(is_near(out.weights[1], sigmoid(1.0F)));
}

static void bias_is_read_as_bf16_too(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SIGMOID, ROUTER_NOAUX_TC, 4);
    const float logits[4] = {0.0F};
    uint16_t bias[4] = {0, mlai_bf16_from_f32(0.5F), 0, mlai_bf16_from_f32(1.0F)};
    vector bias_vector = {bias, MLA_BF16, 4};
    float scratch[SCRATCH];
    choices out;
    router_choose(&config, logits, &bias_vector, scratch,
                  (router_choices){out.experts, out.weights});
    assert_int_equal(out.experts[0], 3);
    assert_int_equal(out.experts[1], 1);
}

static void sigmoid_weights_are_normed_then_scaled(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SIGMOID, ROUTER_NOAUX_TC, 4);
    const float logits[4] = {2.0F, 1.0F, 0.0F, -1.0F};
    float sum = sigmoid(2.0F) + sigmoid(1.0F);
    config.is_topk_normed = true;
    config.routed_scale = 2.5F;
    choices out = choose(&config, logits, NULL);
    assert_true(is_near(out.weights[0], 2.5F * sigmoid(2.0F) / sum));
    assert_true(is_near(out.weights[1], 2.5F * sigmoid(1.0F) / sum));
}

/* Group 1 wins by its two best; all its biased scores are negative. A mask of 0 instead of
 * -inf would prefer the experts of the other group. */
static void negative_biased_scores_of_a_kept_group_beat_a_masked_group(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SIGMOID, ROUTER_NOAUX_TC, 8);
    const float logits[8] = {0.0F};
    const float bias[8] = {-5.0F, -5.0F, -5.0F, -5.0F, -2.0F, -3.0F, -1.0F, -4.0F};
    config.num_groups = 2;
    config.top_groups = 1;
    choices out = choose(&config, logits, bias);
    assert_int_equal(out.experts[0], 6);
    assert_int_equal(out.experts[1], 4);
}

/* Group 0 has the best expert, group 1 the better pair. */
static void noaux_groups_are_scored_by_their_two_best(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SIGMOID, ROUTER_NOAUX_TC, 8);
    const float bias[8] = {1.0F, -1.0F, -1.0F, -1.0F, 0.8F, 0.0F, 0.7F, 0.0F};
    const float logits[8] = {0.0F};
    config.num_groups = 2;
    config.top_groups = 1;
    choices out = choose(&config, logits, bias);
    assert_int_equal(out.experts[0], 4);
    assert_int_equal(out.experts[1], 6);
}

static void limited_greedy_groups_are_scored_by_their_best(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SOFTMAX, ROUTER_GROUP_LIMITED_GREEDY, 8);
    const float logits[8] = {3.0F, -9.0F, -9.0F, -9.0F, 2.8F, 0.0F, 2.7F, 0.0F};
    config.num_groups = 2;
    config.top_groups = 1;
    choices out = choose(&config, logits, NULL);
    assert_int_equal(out.experts[0], 0);
    assert_int_equal(out.experts[1], 1);
}

static void logits_that_are_not_numbers_still_choose_experts_that_exist(void **state)
{
    (void)state;
    model_config config = config_of(ROUTER_SIGMOID, ROUTER_NOAUX_TC, 4);
    const float logits[4] = {NAN, NAN, NAN, NAN};
    config.num_groups = 2;
    choices out = choose(&config, logits, NULL);
    for (int i = 0; i < 2; i++) {
        assert_true(out.experts[i] >= 0 && out.experts[i] < 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_largest_softmax_values),
        cmocka_unit_test(softmax_weights_are_scaled_or_normed_but_not_both),
        cmocka_unit_test(equal_scores_go_to_the_lower_index),
        cmocka_unit_test(equal_groups_go_to_the_lower_index),
        cmocka_unit_test(bias_chooses_but_does_not_weigh),
        cmocka_unit_test(bias_is_read_as_bf16_too),
        cmocka_unit_test(sigmoid_weights_are_normed_then_scaled),
        cmocka_unit_test(negative_biased_scores_of_a_kept_group_beat_a_masked_group),
        cmocka_unit_test(noaux_groups_are_scored_by_their_two_best),
        cmocka_unit_test(limited_greedy_groups_are_scored_by_their_best),
        cmocka_unit_test(logits_that_are_not_numbers_still_choose_experts_that_exist),
    };
    return cmocka_run_group_tests_name("router", tests, NULL, NULL);
}
