/* mailbox.c - the engine's callbacks: see mailbox.h. The reader frees a mailbox as soon as it
 * sees has_ended, so that is the last touch of it; waking comes after. */
#include "server/api/mailbox.h"

#include <assert.h>

#include "base/clock.h"
#include "base/size.h"

static void wake(const api_settings *settings)
{
    if (settings->wake) {
        settings->wake(settings->user);
    }
}

static void keep_logprobs(const api_mailbox *self, const engine_event *event)
{
    engine_logprob *row = self->logprobs + event->index * (1 + self->num_top);
    row[0] = (engine_logprob){event->token, event->logprob};
    for (int32_t i = 0; i < self->num_top; i++) {
        row[1 + i] = i < event->num_top ? event->top[i] : (engine_logprob){-1, 0};
    }
}

static void observe_token(api_mailbox *self, int64_t index)
{
    int64_t now_ns = mlai_now_ns();
    api_metrics *metrics = self->settings->metrics;
    if (index == 0) {
        api_observe(metrics, API_TIME_TO_FIRST_TOKEN, now_ns - self->submit_ns);
    } else {
        api_observe(metrics, API_INTER_TOKEN, now_ns - self->last_ns);
    }
    self->last_ns = now_ns;
}

static bool on_token(engine_request *request, const engine_event *event)
{
    api_mailbox *self = request->user;
    assert(event->index >= 0 && event->index < self->max_tokens);
    self->ids[event->index] = event->token;
    if (self->logprobs) {
        keep_logprobs(self, event);
    }
    if (event->is_end) {
        self->end_index = event->index;
    }
    if (self->settings->metrics) {
        observe_token(self, event->index);
    }
    atomic_store_explicit(&self->num, event->index + 1, memory_order_release);
    wake(self->settings);
    return true;
}

static void observe_end(const api_mailbox *self, const engine_request *request)
{
    api_metrics *metrics = self->settings->metrics;
    const engine_result *result = &self->result;
    if (!metrics) {
        return;
    }
    api_uncount(&metrics->choices_open, 1);
    api_observe(metrics, API_END_TO_END, mlai_now_ns() - self->submit_ns);
    api_observe(metrics, API_QUEUE_TIME, result->queued_ns);
    api_observe(metrics, API_PROMPT_TOKENS, request->num_prompt);
    api_observe(metrics, API_NEW_TOKENS, result->num_tokens);
    api_observe(metrics, API_MAX_TOKENS, request->max_tokens);
    if (result->num_tokens > 0) {
        api_observe(metrics, API_PREFILL_TIME, result->prefill_ns);
        api_observe(metrics, API_DECODE_TIME, result->decode_ns);
        api_observe(metrics, API_INFERENCE_TIME, result->prefill_ns + result->decode_ns);
    }
    if (result->num_tokens > 1) {
        api_observe(metrics, API_TIME_PER_TOKEN,
                    result->decode_ns / (result->num_tokens - 1));
    }
}

static void on_end(engine_request *request, const engine_result *result)
{
    api_mailbox *self = request->user;
    const api_settings *settings = self->settings;
    self->result = *result;
    observe_end(self, request);
    atomic_store_explicit(&self->has_ended, true, memory_order_release);
    wake(settings);
}

static bool size_of(int64_t max_tokens, size_t item_bytes, size_t *out)
{
    return mlai_size_mul((size_t)max_tokens, item_bytes, out);
}

size_t api_mailbox_bytes(int64_t max_tokens, bool has_logprobs, int32_t num_top)
{
    size_t ids = 0;
    size_t logprobs = 0;
    size_t sum = 0;
    size_t row_bytes = has_logprobs ? (1 + (size_t)num_top) * sizeof(engine_logprob) : 0;
    bool fits = size_of(max_tokens, sizeof(int32_t), &ids) &&
                size_of(max_tokens, row_bytes, &logprobs) &&
                mlai_size_add(ids, logprobs, &sum);
    return fits ? sum : SIZE_MAX;
}

mla_status api_mailbox_begin(api_mailbox *self, const api_settings *settings,
                             engine_request *request, api_memory *memory, mla_error *err)
{
    static const char *const what = "the answer of a request";
    size_t max_tokens = (size_t)request->max_tokens;
    void *ids = NULL;
    void *logprobs = NULL;
    MLAI_TRY(api_memory_take(memory, max_tokens, sizeof(int32_t), what, &ids, err));
    if (request->wants_logprobs) {
        size_t row_bytes = (1 + (size_t)request->num_top_logprobs) * sizeof(engine_logprob);
        MLAI_TRY(api_memory_take(memory, max_tokens, row_bytes, what, &logprobs, err));
    }
    self->settings = settings;
    self->ids = ids;
    self->logprobs = logprobs;
    self->max_tokens = request->max_tokens;
    self->num_top = request->num_top_logprobs;
    self->end_index = -1;
    atomic_init(&self->num, 0);
    atomic_init(&self->has_ended, false);
    request->on_token = on_token;
    request->on_end = on_end;
    request->user = self;
    return MLA_OK;
}

void api_mailbox_submit(api_mailbox *self)
{
    self->submit_ns = mlai_now_ns();
    if (self->settings->metrics) {
        api_count(&self->settings->metrics->choices_open, 1);
    }
}

engine_event api_mailbox_event(const api_mailbox *self, int64_t index)
{
    const engine_logprob *row =
        self->logprobs ? self->logprobs + index * (1 + self->num_top) : NULL;
    engine_event event = {.token = self->ids[index],
                          .is_end = index == self->end_index,
                          .index = index,
                          .logprob = row ? row->logprob : 0,
                          .top = row ? row + 1 : NULL};
    while (row && event.num_top < self->num_top && event.top[event.num_top].id >= 0) {
        event.num_top++;
    }
    return event;
}
