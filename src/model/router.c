/* router.c - scores, groups, choices and weights of experts: see router.h. */
#include "model/router.h"

#include <math.h>

#include "model/cpu/load.h"

static void softmax(const float *logits, int32_t num, float *out)
{
    float max = logits[0];
    for (int32_t i = 1; i < num; i++) {
        max = logits[i] > max ? logits[i] : max;
    }
    float sum = 0.0F;
    for (int32_t i = 0; i < num; i++) {
        out[i] = expf(logits[i] - max);
        sum += out[i];
    }
    for (int32_t i = 0; i < num; i++) {
        out[i] /= sum;
    }
}

static void score_experts(const model_config *config, const float *logits, float *scores)
{
    if (config->score == ROUTER_SOFTMAX) {
        softmax(logits, config->num_experts, scores);
        return;
    }
    for (int32_t i = 0; i < config->num_experts; i++) {
        scores[i] = 1.0F / (1.0F + expf(-logits[i]));
    }
}

/* What experts are chosen by: the scores, and under noaux_tc the bias too. */
static void biased_scores(const model_config *config, const float *scores,
                          const vector *bias, float *biased)
{
    bool has_bias = config->choice == ROUTER_NOAUX_TC && bias->data;
    for (int32_t i = 0; i < config->num_experts; i++) {
        float add = has_bias ? load_weight(bias->data, bias->dtype, (size_t)i) : 0.0F;
        biased[i] = scores[i] + add;
    }
}

/* The lowest index of the largest value above `taken`'s -inf; -1 where there is none. */
static int32_t index_of_max(const float *values, int32_t num)
{
    int32_t best = -1;
    for (int32_t i = 0; i < num; i++) {
        if (values[i] > -INFINITY && (best < 0 || values[i] > values[best])) {
            best = i;
        }
    }
    return best;
}

/* The group's largest value, or the sum of its two largest under noaux_tc. */
static float score_of_group(const model_config *config, const float *values, int32_t num)
{
    float first = -INFINITY;
    float second = -INFINITY;
    for (int32_t i = 0; i < num; i++) {
        if (values[i] > first) {
            second = first;
            first = values[i];
        } else if (values[i] > second) {
            second = values[i];
        }
    }
    return config->choice == ROUTER_NOAUX_TC && num > 1 ? first + second : first;
}

/* groups: [num_groups] scratch. Sets the experts of all but the best top_groups groups to
 * -inf. */
static void mask_groups(const model_config *config, float *biased, float *groups)
{
    int32_t size = config->num_experts / config->num_groups;
    for (int32_t g = 0; g < config->num_groups; g++) {
        groups[g] = score_of_group(config, biased + (size_t)g * (size_t)size, size);
    }
    for (int32_t kept = 0; kept < config->top_groups; kept++) {
        int32_t best = index_of_max(groups, config->num_groups);
        if (best >= 0) {
            groups[best] = -INFINITY;
        }
    }
    for (int32_t g = 0; g < config->num_groups; g++) {
        for (int32_t i = 0; groups[g] > -INFINITY && i < size; i++) {
            biased[g * size + i] = -INFINITY;
        }
    }
}

static bool has_groups(const model_config *config)
{
    return config->choice != ROUTER_GREEDY && config->num_groups > 1;
}

size_t router_scratch_floats(const model_config *config)
{
    return 2 * (size_t)config->num_experts + (size_t)config->num_groups;
}

/* biased: consumed, chosen entries become -inf. */
static void take_best(const model_config *config, float *biased, int32_t *experts)
{
    for (int32_t slot = 0; slot < config->experts_per_token; slot++) {
        int32_t best = index_of_max(biased, config->num_experts);
        experts[slot] = best >= 0 ? best : slot; /* NaN logits: any choice is as good */
        biased[experts[slot]] = -INFINITY;
    }
}

/* DeepSeek-V2's own code scales only where it does not normalise, and normalises only where
 * there is more than one expert; V3 does both. */
static void finish_weights(const model_config *config, float *weights)
{
    bool is_v2 = config->choice != ROUTER_NOAUX_TC;
    int32_t num = config->experts_per_token;
    bool is_normed = config->is_topk_normed && (!is_v2 || num > 1);
    float sum = 0.0F;
    for (int32_t i = 0; i < num; i++) {
        sum += weights[i];
    }
    for (int32_t i = 0; i < num; i++) {
        if (is_normed) {
            weights[i] /= sum + 1e-20F;
        }
        if (!is_normed || !is_v2) {
            weights[i] *= config->routed_scale;
        }
    }
}

void router_choose(const model_config *config, const float *logits, const vector *bias,
                   float *scratch, router_choices out)
{
    float *scores = scratch;
    float *biased = scores + config->num_experts;
    float *groups = biased + config->num_experts;
    score_experts(config, logits, scores);
    biased_scores(config, scores, bias, biased);
    if (has_groups(config)) {
        mask_groups(config, biased, groups);
    }
    take_best(config, biased, out.experts);
    for (int32_t i = 0; i < config->experts_per_token; i++) {
        out.weights[i] = scores[out.experts[i]];
    }
    finish_weights(config, out.weights);
}
