/* logprobs.c - the model's own probabilities, of the token that was drawn and the likeliest. */
#include <math.h>

#include "engine/state.h"

static double log_sum_exp(const float *logits, int32_t num)
{
    float max = -INFINITY;
    double sum = 0.0;
    for (int32_t i = 0; i < num; i++) {
        max = logits[i] > max ? logits[i] : max;
    }
    for (int32_t i = 0; i < num; i++) {
        sum += (double)expf(logits[i] - max);
    }
    return (double)max + log(sum);
}

/* The largest of logits, in falling order, equals by the lower id; returns their number. */
static int32_t find_top(const float *logits, int32_t num_logits, int32_t num_top,
                        engine_logprob *top)
{
    int32_t num = 0;
    for (int32_t id = 0; num_top > 0 && id < num_logits; id++) {
        if (num == num_top && !(logits[id] > top[num - 1].logprob)) {
            continue;
        }
        int32_t at = num < num_top ? num++ : num - 1;
        while (at > 0 && logits[id] > top[at - 1].logprob) {
            top[at] = top[at - 1];
            at--;
        }
        top[at] = (engine_logprob){id, logits[id]};
    }
    return num;
}

void logprobs_fill(engine *self, int32_t num_top, engine_event *event)
{
    const float *logits = self->raw_logits;
    double total = log_sum_exp(logits, self->vocab_size);
    event->logprob = (float)((double)logits[event->token] - total);
    event->num_top = find_top(logits, self->vocab_size, num_top, self->top);
    event->top = self->top;
    for (int32_t i = 0; i < event->num_top; i++) {
        self->top[i].logprob = (float)((double)self->top[i].logprob - total);
    }
}
