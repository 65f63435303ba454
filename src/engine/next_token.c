/* next_token.c - from logits to the next token of a request, which may be its last. */
#include <string.h>

#include "base/clock.h"
#include "engine/state.h"

static bool is_stop_id(const engine_request *request, int32_t token)
{
    for (int32_t i = 0; i < request->num_stop_ids; i++) {
        if (request->stop_ids[i] == token) {
            return true;
        }
    }
    return false;
}

static bool is_end(const engine *self, const engine_request *request, int32_t token)
{
    bool is_eos = model_config_is_eos(model_config_of(self->model), token);
    return (is_eos && !request->ignores_eos) || is_stop_id(request, token);
}

static void keep_token(engine *self, engine_slot *slot, int32_t token)
{
    slot->last_ns = mlai_now_ns();
    if (slot->num_new == 0) {
        slot->first_ns = slot->last_ns;
    }
    slot->tokens[slot->request->num_prompt + slot->num_new] = token;
    slot->num_new++;
    logits_count(slot, token);
    self->stats.new_tokens++;
}

/* Ends the request where this token says so. */
static void end_or_go_on(engine *self, engine_slot *slot, const engine_event *event,
                         bool is_wanted)
{
    if (event->is_end) {
        slot_end(self, slot, ENGINE_STOP, event->token);
    } else if (slot->text.stop_string >= 0) {
        slot_end(self, slot, ENGINE_STOP, -1);
    } else if (!is_wanted) {
        slot_end(self, slot, ENGINE_CANCELLED, -1);
    } else if (slot->num_new == slot->max_new) {
        slot_end(self, slot, ENGINE_LENGTH, -1);
    }
}

int32_t take_token(engine *self, engine_slot *slot, float *logits)
{
    engine_request *request = slot->request;
    int64_t position = request->num_prompt + slot->num_new;
    if (request->wants_logprobs) {
        memcpy(self->raw_logits, logits, (size_t)self->vocab_size * sizeof *logits);
    }
    logits_shape(self, slot, logits);
    int32_t token = sample_token(logits, self->vocab_size, &request->sampling, position,
                                 self->candidates);
    engine_event event = {
        .token = token, .is_end = is_end(self, request, token), .index = slot->num_new};
    if (request->wants_logprobs) {
        logprobs_fill(self, request->num_top_logprobs, &event);
    }
    keep_token(self, slot, token);
    if (request->num_stops > 0) {
        (void)answer_text_add(&slot->text, &event, self->text);
    }
    bool is_wanted = !request->on_token || request->on_token(request, &event);
    end_or_go_on(self, slot, &event, is_wanted);
    return token;
}
