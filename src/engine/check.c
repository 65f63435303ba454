/* check.c - what can never run is refused before it waits, with the numbers. */
#include <math.h>

#include "engine/state.h"

static mla_status check_sampling(const sampling_options *options, mla_error *err)
{
    MLAI_CHECK(options->temperature >= 0.0F && isfinite(options->temperature),
               MLA_ERR_ARGUMENT, "temperature %g is not 0 or more",
               (double)options->temperature);
    MLAI_CHECK(options->top_k >= 0, MLA_ERR_ARGUMENT, "top_k %d is negative",
               options->top_k);
    MLAI_CHECK(options->top_p >= 0.0F && options->top_p <= 1.0F, MLA_ERR_ARGUMENT,
               "top_p %g is outside 0 to 1", (double)options->top_p);
    MLAI_CHECK(options->min_p >= 0.0F && options->min_p <= 1.0F, MLA_ERR_ARGUMENT,
               "min_p %g is outside 0 to 1", (double)options->min_p);
    return MLA_OK;
}

static mla_status check_penalties(const engine_penalties *penalties, mla_error *err)
{
    MLAI_CHECK(penalties->repetition >= 0.0F && isfinite(penalties->repetition),
               MLA_ERR_ARGUMENT, "repetition penalty %g is not above 0",
               (double)penalties->repetition);
    MLAI_CHECK(isfinite(penalties->presence) && isfinite(penalties->frequency),
               MLA_ERR_ARGUMENT, "penalties %g and %g are not finite",
               (double)penalties->presence, (double)penalties->frequency);
    return MLA_OK;
}

static mla_status check_stops(const engine *self, const engine_request *request,
                              mla_error *err)
{
    MLAI_CHECK(request->num_stops >= 0 && request->num_stops <= ENGINE_MAX_STOPS,
               MLA_ERR_ARGUMENT, "%d stop strings; %d at most", request->num_stops,
               ENGINE_MAX_STOPS);
    MLAI_CHECK(request->num_stops == 0 || self->options.words, MLA_ERR_STATE,
               "stop strings need a tokenizer, which this engine has not");
    for (int32_t i = 0; i < request->num_stops; i++) {
        size_t bytes = request->stops[i].bytes;
        MLAI_CHECK(bytes >= 1 && bytes <= ENGINE_MAX_STOP_BYTES, MLA_ERR_ARGUMENT,
                   "stop string %d has %zu bytes; 1 to %d", i, bytes,
                   ENGINE_MAX_STOP_BYTES);
    }
    MLAI_CHECK(request->num_stop_ids >= 0 && request->num_stop_ids <= ENGINE_MAX_STOP_IDS,
               MLA_ERR_ARGUMENT, "%d stop ids; %d at most", request->num_stop_ids,
               ENGINE_MAX_STOP_IDS);
    return model_check_tokens(self->model, request->stop_ids, request->num_stop_ids, err);
}

static mla_status check_biases(const engine *self, const engine_request *request,
                               mla_error *err)
{
    MLAI_CHECK(request->num_biases >= 0 && request->num_biases <= ENGINE_MAX_BIASES,
               MLA_ERR_ARGUMENT, "%d logit biases; %d at most", request->num_biases,
               ENGINE_MAX_BIASES);
    for (int32_t i = 0; i < request->num_biases; i++) {
        float bias = request->biases[i].bias;
        MLAI_TRY(model_check_tokens(self->model, &request->biases[i].id, 1, err));
        MLAI_CHECK(bias <= 1e6F && !isnan(bias), MLA_ERR_ARGUMENT,
                   "the bias %g of token %d is not finite", (double)bias,
                   request->biases[i].id);
    }
    return MLA_OK;
}

static mla_status check_numbers(const engine_request *request, mla_error *err)
{
    MLAI_CHECK(request->num_prompt >= 1, MLA_ERR_ARGUMENT, "the prompt has no token");
    MLAI_CHECK(request->max_tokens >= 0, MLA_ERR_ARGUMENT, "max_tokens is %lld",
               (long long)request->max_tokens);
    MLAI_CHECK(request->min_tokens >= 0, MLA_ERR_ARGUMENT, "min_tokens is %lld",
               (long long)request->min_tokens);
    MLAI_CHECK(request->priority >= -ENGINE_MAX_PRIORITY &&
                   request->priority <= ENGINE_MAX_PRIORITY,
               MLA_ERR_ARGUMENT, "priority %d is outside -%d to %d", request->priority,
               ENGINE_MAX_PRIORITY, ENGINE_MAX_PRIORITY);
    MLAI_CHECK(request->num_top_logprobs >= 0 &&
                   request->num_top_logprobs <= ENGINE_MAX_LOGPROBS,
               MLA_ERR_ARGUMENT, "%d logprobs; 0 to %d", request->num_top_logprobs,
               ENGINE_MAX_LOGPROBS);
    MLAI_TRY(check_sampling(&request->sampling, err));
    return check_penalties(&request->penalties, err);
}

static int64_t at_least_0(int64_t value)
{
    return value > 0 ? value : 0;
}

/* The context of one request. */
static mla_status check_context(const engine *self, const engine_request *request,
                                engine_misfit *misfit, mla_error *err)
{
    int64_t context = self->limits.max_context_tokens;
    int64_t room = at_least_0(context - request->num_prompt);
    int64_t wanted = request->max_tokens ? request->max_tokens : 1;
    *misfit = (engine_misfit){true, request->num_prompt + wanted, context, room};
    MLAI_CHECK(room > 0, MLA_ERR_BUFFER_SMALL,
               "the prompt of %d tokens leaves no room in the context of %lld",
               request->num_prompt, (long long)context);
    MLAI_CHECK(wanted <= room, MLA_ERR_BUFFER_SMALL,
               "the prompt of %d tokens and %lld new ones do not fit the context of %lld: "
               "%lld too many; %lld new ones would fit",
               request->num_prompt, (long long)wanted, (long long)context,
               (long long)(wanted - room), (long long)room);
    return MLA_OK;
}

/* The pages of all. */
static mla_status check_pool(const engine *self, const engine_request *request,
                             engine_misfit *misfit, mla_error *err)
{
    int64_t available = self->limits.num_pages;
    int64_t tokens = available * MODEL_PAGE_TOKENS + 1 - request->num_prompt;
    int64_t wanted = request->max_tokens ? request->max_tokens : 1;
    int64_t required = pages_needed(request->num_prompt, wanted);
    *misfit = (engine_misfit){false, required, available, at_least_0(tokens)};
    MLAI_CHECK(required <= available, MLA_ERR_BUFFER_SMALL,
               "the prompt of %d tokens and %lld new ones need %lld pages of %d tokens and "
               "the pool has %lld: %lld short; the most new tokens that fit is %lld",
               request->num_prompt, (long long)wanted, (long long)required,
               MODEL_PAGE_TOKENS, (long long)available, (long long)(required - available),
               (long long)misfit->largest_max_tokens);
    return MLA_OK;
}

mla_status engine_check(const engine *self, const engine_request *request,
                        engine_misfit *misfit_out, mla_error *err)
{
    engine_misfit misfit = {0};
    MLAI_TRY(check_numbers(request, err));
    MLAI_TRY(check_stops(self, request, err));
    MLAI_TRY(check_biases(self, request, err));
    mla_status status = check_context(self, request, &misfit, err);
    if (status == MLA_OK) {
        status = check_pool(self, request, &misfit, err);
    }
    if (status != MLA_OK) {
        if (misfit_out) {
            *misfit_out = misfit;
        }
        return status;
    }
    MLAI_CHECK(request->min_tokens <= request_max_new(self, request), MLA_ERR_ARGUMENT,
               "min_tokens %lld is more than the %lld new ones that may come",
               (long long)request->min_tokens, (long long)request_max_new(self, request));
    return model_check_tokens(self->model, request->prompt, request->num_prompt, err);
}
