/* logits.c - bias, an early end forbidden, and penalties: a request's own wishes, done to the
 * logits before anything is drawn from them. */
#include <math.h>

#include "engine/state.h"

#define IN_PROMPT                                                                          \
    UINT32_C(0x80000000) /* in counts, above the number of times in the answer */

static bool has_penalties(const engine_request *request)
{
    const engine_penalties *wanted = &request->penalties;
    bool repeats = wanted->repetition > 0.0F && wanted->repetition != 1.0F;
    return repeats || wanted->presence != 0.0F || wanted->frequency != 0.0F;
}

void logits_begin(engine_slot *slot)
{
    const engine_request *request = slot->request;
    for (int32_t i = 0; has_penalties(request) && i < request->num_prompt; i++) {
        slot->counts[request->prompt[i]] = IN_PROMPT;
    }
}

void logits_count(engine_slot *slot, int32_t token)
{
    if (has_penalties(slot->request)) {
        slot->counts[token]++;
    }
}

void logits_end(engine_slot *slot)
{
    int64_t num = slot->request->num_prompt + slot->num_new;
    for (int64_t i = 0; has_penalties(slot->request) && i < num; i++) {
        slot->counts[slot->tokens[i]] = 0;
    }
}

static void penalise(const engine *self, const engine_slot *slot, float *logits)
{
    const engine_penalties *wanted = &slot->request->penalties;
    float repetition = wanted->repetition > 0.0F ? wanted->repetition : 1.0F;
    for (int32_t id = 0; id < self->vocab_size; id++) {
        uint32_t times = slot->counts[id] & ~IN_PROMPT;
        if (slot->counts[id] != 0) {
            logits[id] =
                logits[id] > 0.0F ? logits[id] / repetition : logits[id] * repetition;
        }
        if (times > 0) {
            logits[id] -= wanted->presence + wanted->frequency * (float)times;
        }
    }
}

/* No end before min_tokens. */
static void forbid_ends(const engine *self, const engine_request *request, float *logits)
{
    const model_config *config = model_config_of(self->model);
    for (int32_t i = 0; !request->ignores_eos && i < config->num_eos_tokens; i++) {
        logits[config->eos_tokens[i]] = -INFINITY;
    }
    for (int32_t i = 0; i < request->num_stop_ids; i++) {
        logits[request->stop_ids[i]] = -INFINITY;
    }
}

void logits_shape(const engine *self, const engine_slot *slot, float *logits)
{
    const engine_request *request = slot->request;
    for (int32_t i = 0; i < request->num_biases; i++) {
        logits[request->biases[i].id] += request->biases[i].bias;
    }
    if (slot->num_new < request->min_tokens) {
        forbid_ends(self, request, logits);
    }
    if (has_penalties(request)) {
        penalise(self, slot, logits);
    }
}
