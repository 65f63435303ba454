/* slots.c - a request takes a place, its pages follow, and both come back. */
#include "base/clock.h"
#include "engine/state.h"

int64_t pages_needed(int64_t num_prompt, int64_t num_new)
{
    return mlai_ceil_div(num_prompt + num_new - 1, MODEL_PAGE_TOKENS);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A request that says no number gets the default, as far as it can ever fit. */
int64_t request_max_new(const engine *self, const engine_request *request)
{
    const engine_limits *limits = &self->limits;
    int64_t pool_tokens = (int64_t)limits->num_pages * MODEL_PAGE_TOKENS + 1;
    int64_t room = smaller(limits->max_context_tokens, pool_tokens) - request->num_prompt;
    if (request->max_tokens) {
        return request->max_tokens;
    }
    return limits->default_max_tokens ? smaller(limits->default_max_tokens, room) : room;
}

bool slot_begin(engine *self, engine_slot *slot, engine_request *request)
{
    int64_t max_new = request_max_new(self, request);
    int32_t num_pages = (int32_t)pages_needed(request->num_prompt, max_new);
    if (!pages_reserve(&self->pages, num_pages)) {
        return false;
    }
    *slot = (engine_slot){
        .request = request,
        .tokens = slot->tokens,
        .table = slot->table,
        .counts = slot->counts,
        .num_reserved = num_pages,
        .max_new = max_new,
        .key = {request->cache_salt, 0},
        .prefill_turn = self->prefill_now,
        .start_ns = mlai_now_ns(),
    };
    for (int32_t i = 0; i < request->num_prompt; i++) {
        slot->tokens[i] = request->prompt[i];
    }
    answer_text_begin(&slot->text, self->options.words, request);
    logits_begin(slot);
    self->stats.prompt_tokens += (uint64_t)request->num_prompt;
    return true;
}

void slot_grow(engine *self, engine_slot *slot, int64_t length)
{
    while ((int64_t)slot->num_pages * MODEL_PAGE_TOKENS < length) {
        slot->table[slot->num_pages++] = pages_take(&self->pages, slot_place(self, slot));
        slot->num_reserved--;
    }
}

void slot_give_pages(engine *self, engine_slot *slot)
{
    pages_unreserve(&self->pages, slot->num_reserved);
    slot->num_reserved = 0;
    while (slot->num_pages > 0) { /* a prompt's last pages are the first to be forgotten */
        pages_drop(&self->pages, slot->table[--slot->num_pages]);
    }
}

static void tell_end(engine *self, engine_request *request, const engine_result *result)
{
    self->stats.num_ended[result->finish]++;
    engine_show(self);                /* who is told finds the numbers as they are now */
    request->on_end(request, result); /* may free it */
}

void slot_end(engine *self, engine_slot *slot, engine_finish how, int32_t stop_id)
{
    engine_request *request = slot->request;
    int64_t now_ns = mlai_now_ns();
    int64_t first_ns = slot->num_new > 0 ? slot->first_ns : now_ns;
    engine_result result = {
        .finish = how,
        .stop_id = stop_id,
        .stop_string = slot->text.stop_string,
        .num_tokens = slot->num_new,
        .num_cached = slot->num_cached,
        .queued_ns = slot->start_ns - request->submit_ns,
        .prefill_ns = first_ns - slot->start_ns,
        .decode_ns = slot->num_new > 0 ? slot->last_ns - first_ns : 0,
    };
    logits_end(slot);
    slot_give_pages(self, slot);
    slot->request = NULL;
    tell_end(self, request, &result);
}

void request_end(engine *self, engine_request *request, engine_finish how)
{
    engine_result result = {.finish = how,
                            .stop_id = -1,
                            .stop_string = -1,
                            .queued_ns = mlai_now_ns() - request->submit_ns};
    tell_end(self, request, &result);
}
