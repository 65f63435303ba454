/* generate.c - requests run in slots: a free slot takes the next request and prefills its
 * prompt, then all slots decode one token together, until none is left. */
#include "base/clock.h"
#include "engine/state.h"

typedef struct generation {
    engine *engine;
    const engine_request *requests; /* [num_requests] */
    int32_t num_requests, next_request;
    engine_token on_token;
    void *user;
    engine_result *results; /* [num_requests] */
} generation;

static mla_status check_sampling(const sampling_options *options, mla_error *err)
{
    MLAI_CHECK(options->temperature >= 0.0F, MLA_ERR_ARGUMENT,
               "temperature %g is not 0 or more", (double)options->temperature);
    MLAI_CHECK(options->top_k >= 0, MLA_ERR_ARGUMENT, "top_k %d is negative",
               options->top_k);
    MLAI_CHECK(options->top_p >= 0.0F && options->top_p <= 1.0F, MLA_ERR_ARGUMENT,
               "top_p %g is outside 0 to 1", (double)options->top_p);
    MLAI_CHECK(options->min_p >= 0.0F && options->min_p <= 1.0F, MLA_ERR_ARGUMENT,
               "min_p %g is outside 0 to 1", (double)options->min_p);
    return MLA_OK;
}

static mla_status check_request(const engine *self, const engine_request *request,
                                mla_error *err)
{
    int64_t context = self->max_context_tokens;
    MLAI_CHECK(request->num_prompt >= 1, MLA_ERR_ARGUMENT, "the prompt has no token");
    MLAI_CHECK(request->max_tokens >= 0, MLA_ERR_ARGUMENT, "max_tokens is %lld",
               (long long)request->max_tokens);
    MLAI_CHECK(request->num_prompt < context, MLA_ERR_ARGUMENT,
               "the prompt of %d tokens leaves no room in the context of %lld",
               request->num_prompt, (long long)context);
    MLAI_CHECK(request->max_tokens <= context - request->num_prompt, MLA_ERR_ARGUMENT,
               "the prompt of %d tokens and %lld new ones do not fit the context of %lld",
               request->num_prompt, (long long)request->max_tokens, (long long)context);
    MLAI_TRY(model_check_tokens(self->model, request->prompt, request->num_prompt, err));
    return check_sampling(&request->sampling, err);
}

static void finish(const generation *run, engine_slot *slot, engine_finish how)
{
    run->results[slot->request] = (engine_result){
        .finish = how,
        .num_tokens = slot->num_new,
        .prefill_ns = slot->prefill_ns,
        .decode_ns = mlai_now_ns() - slot->first_ns,
    };
    slot->request = NO_REQUEST;
}

/* The next token of a slot, from its logits [vocab]; a slot that ends becomes free. */
static void take_token(const generation *run, engine_slot *slot, const float *logits)
{
    engine *self = run->engine;
    const engine_request *request = &run->requests[slot->request];
    int64_t position = request->num_prompt + slot->num_new;
    int32_t token = sample_token(logits, self->vocab_size, &request->sampling, position,
                                 self->candidates);
    slot->token = token;
    slot->num_new++;
    bool goes_on = !run->on_token || run->on_token(run->user, slot->request, token);
    if (model_config_is_eos(model_config_of(self->model), token)) {
        finish(run, slot, ENGINE_STOP);
    } else if (!goes_on) {
        finish(run, slot, ENGINE_CANCELLED);
    } else if (slot->num_new == slot->max_new) {
        finish(run, slot, ENGINE_LENGTH);
    }
}

static mla_status start_request(generation *run, int32_t slot_index, mla_error *err)
{
    engine *self = run->engine;
    engine_slot *slot = &self->slots[slot_index];
    const engine_request *request = &run->requests[run->next_request];
    int64_t room = self->max_context_tokens - request->num_prompt;
    int64_t start_ns = mlai_now_ns();
    MLAI_TRY(engine_prefill(self, slot_index, request->prompt, request->num_prompt,
                            self->logits, err));
    *slot = (engine_slot){
        .request = run->next_request++,
        .length = request->num_prompt,
        .max_new = request->max_tokens ? request->max_tokens : room,
        .first_ns = mlai_now_ns(),
    };
    slot->prefill_ns = slot->first_ns - start_ns;
    take_token(run, slot, self->logits);
    return MLA_OK;
}

static mla_status fill_slots(generation *run, mla_error *err)
{
    for (int32_t i = 0; i < run->engine->max_requests; i++) {
        while (run->engine->slots[i].request == NO_REQUEST &&
               run->next_request < run->num_requests) {
            MLAI_TRY(start_request(run, i, err));
        }
    }
    return MLA_OK;
}

/* The running slots, in order; returns their number. */
static int32_t gather_step(engine *self)
{
    int32_t num = 0;
    for (int32_t i = 0; i < self->max_requests; i++) {
        const engine_slot *slot = &self->slots[i];
        if (slot->request == NO_REQUEST) {
            continue;
        }
        self->step_slots[num] = i;
        self->step_tokens[num] = slot->token;
        self->step_positions[num] = slot->length;
        self->step_tables[num] = engine_table(self, i);
        num++;
    }
    return num;
}

static mla_status decode_slots(const generation *run, int32_t num, mla_error *err)
{
    engine *self = run->engine;
    model_step step = {
        .num_sequences = num,
        .tokens = self->step_tokens,
        .positions = self->step_positions,
        .block_tables = self->step_tables,
        .logits = self->logits,
    };
    MLAI_TRY(model_decode(self->model, &step, err));
    for (int32_t i = 0; i < num; i++) {
        engine_slot *slot = &self->slots[self->step_slots[i]];
        slot->length++;
        take_token(run, slot, self->logits + (size_t)i * (size_t)self->vocab_size);
    }
    return MLA_OK;
}

static mla_status run_all(generation *run, mla_error *err)
{
    for (;;) {
        MLAI_TRY(fill_slots(run, err));
        int32_t num = gather_step(run->engine);
        if (num == 0) {
            return MLA_OK;
        }
        MLAI_TRY(decode_slots(run, num, err));
    }
}

mla_status engine_generate(engine *self, const engine_request *requests,
                           int32_t num_requests, engine_token on_token, void *user,
                           engine_result *results, mla_error *err)
{
    generation run = {
        .engine = self,
        .requests = requests,
        .num_requests = num_requests,
        .on_token = on_token,
        .user = user,
        .results = results,
    };
    for (int32_t i = 0; i < num_requests; i++) {
        mla_status status = check_request(self, &requests[i], err);
        if (status != MLA_OK) {
            mlai_error_prefix(err, "request %d", i);
            return status;
        }
    }
    mla_status status = run_all(&run, err);
    for (int32_t i = 0; i < self->max_requests; i++) {
        self->slots[i].request = NO_REQUEST; /* after a failure too */
    }
    return status;
}
