/* call_open.c - from a body to a call that may be submitted. */
#include <string.h>

#include "base/size.h"
#include "server/api/body.h"
#include "server/api/call_parts.h"
#include "server/api/entropy.h"
#include "server/api/model_name.h"
#include "server/api/refused.h"

enum { DEFAULT_CALL_BYTES = 64 << 20 };

static bool fail_memory(api_failure *failure, const mla_error *err)
{
    return api_fail_of(failure, err, NULL);
}

/* How many new tokens a request without max_tokens may have; the engine's own rule. */
static int64_t default_tokens(const engine_limits *limits, int64_t num_prompt)
{
    int64_t pool = (int64_t)limits->num_pages * limits->page_tokens + 1;
    int64_t most = pool < limits->max_context_tokens ? pool : limits->max_context_tokens;
    int64_t room = most - num_prompt;
    int64_t wanted = limits->default_max_tokens;
    return wanted > 0 && wanted < room ? wanted : room;
}

static bool fail_context(const engine_request *request, const engine_misfit *misfit,
                         const char *param, api_failure *failure)
{
    return api_fail(
        failure, API_BAD_REQUEST, param, "context_length_exceeded",
        "This model's maximum context length is %lld tokens. However, you "
        "requested %lld tokens (%d in the %s, %lld in the completion), which is "
        "%lld too many. The largest max_tokens that fits is %lld.",
        (long long)misfit->available, (long long)misfit->required, request->num_prompt,
        param, (long long)(misfit->required - request->num_prompt),
        (long long)(misfit->required - misfit->available),
        (long long)misfit->largest_max_tokens);
}

static bool fail_pool(const engine_request *request, const engine_misfit *misfit,
                      int32_t page_tokens, api_failure *failure)
{
    return api_fail(
        failure, API_BAD_REQUEST, "max_tokens", "kv_capacity_exceeded",
        "The request can never fit the KV pool: %d prompt tokens and %lld new ones "
        "need %lld pages of %d tokens (required), the pool has %lld (available), "
        "%lld short (deficit). The largest max_tokens that fits is %lld.",
        request->num_prompt, (long long)request->max_tokens, (long long)misfit->required,
        page_tokens, (long long)misfit->available,
        (long long)(misfit->required - misfit->available),
        (long long)misfit->largest_max_tokens);
}

static bool check(const api_call *call, engine_request *request, api_failure *failure)
{
    const engine_limits *limits = engine_limits_of(call->settings->engine);
    const char *param = call->kind == API_CHAT ? "messages" : "prompt";
    engine_misfit misfit = {.is_context = true};
    mla_error err = {0};
    mla_status status = engine_check(call->settings->engine, request, &misfit, &err);
    if (status == MLA_ERR_BUFFER_SMALL) {
        return misfit.is_context
                   ? fail_context(request, &misfit, param, failure)
                   : fail_pool(request, &misfit, limits->page_tokens, failure);
    }
    if (status != MLA_OK) { /* the one rule that no field could be held to by itself */
        return api_fail_of(failure, &err, request->min_tokens > 0 ? "min_tokens" : NULL);
    }
    if (!request->max_tokens) {
        request->max_tokens = default_tokens(limits, request->num_prompt);
    }
    return true;
}

/* The first choice of a prompt has its request whole and checked; the others are like it. */
static bool fill_choices(api_call *call, api_failure *failure)
{
    const api_options *options = &call->options;
    for (int32_t i = 0; i < call->num_choices; i++) {
        api_choice *choice = &call->choices[i];
        engine_request *request = &choice->request;
        int32_t number = i % options->num_choices;
        choice->index = i;
        choice->prompt = &call->prompts.list[i / options->num_choices];
        memcpy(request, &options->each, sizeof *request);
        request->prompt = choice->prompt->ids;
        request->num_prompt = choice->prompt->num;
        request->sampling.seed = options->has_seed ? options->seed + (uint64_t)number
                                                   : api_entropy_of(call->settings);
        if (number > 0) {
            request->max_tokens = (choice - 1)->request.max_tokens;
        } else if (!check(call, request, failure)) {
            return false;
        }
    }
    return true;
}

/* The memory of all answers is known before any of it is taken. */
static bool check_bytes(const api_call *call, api_failure *failure)
{
    size_t max_bytes = call->settings->max_call_bytes;
    size_t sum = 0;
    max_bytes = max_bytes ? max_bytes : DEFAULT_CALL_BYTES;
    for (int32_t i = 0; i < call->num_choices; i++) {
        const engine_request *request = &call->choices[i].request;
        size_t bytes = api_mailbox_bytes(request->max_tokens, request->wants_logprobs,
                                         request->num_top_logprobs);
        if (!mlai_size_add(sum, bytes, &sum) || sum > max_bytes) {
            return api_fail(
                failure, API_BAD_REQUEST, "max_tokens", NULL,
                "%d choices of %lld tokens with %d logprobs each need more than "
                "the %zu bytes that one request may have for its answers",
                call->num_choices, (long long)request->max_tokens,
                request->wants_logprobs ? 1 + request->num_top_logprobs : 0, max_bytes);
        }
    }
    return true;
}

/* What an echo says of a prompt: its text, which outlives the body. */
static mla_status keep_text(const tokenizer *words, api_prompt *prompt, api_memory *memory,
                            mla_error *err)
{
    enum { GROWTH = 3, MAX_HELD = 4 };
    if (prompt->text) {
        return api_memory_copy(memory, prompt->text, prompt->bytes, &prompt->text, err);
    }
    detokenizer state = {.num_held = 0};
    size_t most = 1 + MAX_HELD;
    void *text = NULL;
    for (int32_t i = 0; i < prompt->num; i++) {
        size_t bytes = 0;
        (void)tokenizer_bytes_of(words, prompt->ids[i], &bytes);
        most += GROWTH * (bytes + MAX_HELD);
    }
    MLAI_TRY(api_memory_take(memory, most, 1, "the echo of a prompt", &text, err));
    prompt->text = text;
    for (int32_t i = 0; i < prompt->num; i++) {
        size_t bytes = 0;
        const char *piece = tokenizer_bytes_of(words, prompt->ids[i], &bytes);
        prompt->bytes +=
            detokenizer_feed(&state, piece, bytes, (char *)text + prompt->bytes);
    }
    prompt->bytes += detokenizer_finish(&state, (char *)text + prompt->bytes);
    return MLA_OK;
}

static mla_status begin_choices(api_call *call, mla_error *err)
{
    const tokenizer *words = engine_tokenizer_of(call->settings->engine);
    for (int32_t i = 0; call->options.is_echo && i < call->prompts.num; i++) {
        MLAI_TRY(keep_text(words, &call->prompts.list[i], &call->memory, err));
    }
    for (int32_t i = 0; i < call->num_choices; i++) {
        api_choice *choice = &call->choices[i];
        MLAI_TRY(api_mailbox_begin(&choice->mail, call->settings, &choice->request,
                                   &call->memory, err));
        answer_text_begin(&choice->text, words, &choice->request);
    }
    return api_head_make(call, err);
}

static bool make_choices(api_call *call, api_failure *failure)
{
    mla_error err = {0};
    void *choices = NULL;
    size_t num = (size_t)call->prompts.num * (size_t)call->options.num_choices;
    if (api_memory_take(&call->memory, num, sizeof(api_choice), "the choices of a request",
                        &choices, &err) != MLA_OK) {
        return fail_memory(failure, &err);
    }
    memset(choices, 0, num * sizeof(api_choice));
    call->choices = choices;
    call->num_choices = (int32_t)num;
    return fill_choices(call, failure) && check_bytes(call, failure) &&
           (begin_choices(call, &err) == MLA_OK || fail_memory(failure, &err));
}

static bool read_body(api_call *call, const json_t *body, api_failure *failure)
{
    const api_settings *settings = call->settings;
    const api_fields fields = {body, "", failure};
    if (!model_name_check(settings, &fields) ||
        !refused_fields_check(&fields, call->kind) ||
        !api_options_read(settings, call->kind, &fields, &call->memory, &call->options)) {
        return false;
    }
    int32_t max_prompts = API_MAX_CHOICES / call->options.num_choices;
    return call->kind == API_CHAT
               ? api_messages_read(settings, &fields, &call->memory, &call->prompts)
               : api_prompts_read(settings, &fields, max_prompts, &call->memory,
                                  &call->prompts);
}

/* NULL: *failure. */
static api_call *make_call(const api_settings *settings, api_kind kind,
                           api_failure *failure)
{
    api_memory memory = {.ledger = settings->ledger};
    mla_error err = {0};
    void *made = NULL;
    if (api_memory_take(&memory, 1, sizeof(api_call), "a request", &made, &err) != MLA_OK) {
        (void)fail_memory(failure, &err);
        return NULL;
    }
    api_call *call = made;
    memset(call, 0, sizeof *call);
    call->settings = settings;
    call->kind = kind;
    call->memory = memory;
    call->status = API_OK;
    return call;
}

static bool open_call(const api_settings *settings, api_kind kind, const json_t *body,
                      api_call **out, api_failure *failure)
{
    api_call *call = make_call(settings, kind, failure);
    if (!call) {
        return false;
    }
    if (!read_body(call, body, failure) || !make_choices(call, failure)) {
        api_call_close(&call);
        return false;
    }
    *out = call;
    return true;
}

bool api_call_open(const api_settings *settings, api_kind kind, const char *body,
                   size_t bytes, api_call **out, api_failure *failure)
{
    json_t *read = NULL;
    json_scope before = json_scope_enter(settings->ledger, MLA_FOR_SERVER);
    bool is_open = api_body_read(settings, body, bytes, &read, failure) &&
                   open_call(settings, kind, read, out, failure);
    json_decref(read);
    json_scope_leave(before);
    return is_open;
}
