/* Any bytes as the body of a request: the first byte says of which endpoint. It becomes a call
 * or an answer, or a failure with a status, a sentence, and an error object that is JSON;
 * nothing stays in the books, and a call's requests are ones that the engine takes. */
#include <stdlib.h>
#include <string.h>

#include "attention/context.h"
#include "check.h"
#include "server/api/call_parts.h"
#include "support/api_rig.h"

static api_rig *open_rig(void)
{
    const api_rig_options options = {.max_context_tokens = 128};
    api_rig *rig = calloc(1, sizeof *rig);
    FUZZ_CHECK(rig);
    api_rig_open(rig, &options);
    return rig;
}

static void check_json(const char *text, size_t bytes)
{
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    FUZZ_CHECK(root);
    json_decref(root);
}

static void check_failure(const api_failure *failure)
{
    static char text[API_MAX_FAILURE_BYTES];
    FUZZ_CHECK(failure->status == API_BAD_REQUEST || failure->status == API_NOT_FOUND);
    FUZZ_CHECK(failure->message[0] && failure->type);
    size_t bytes = api_failure_print(failure, text);
    FUZZ_CHECK(bytes <= sizeof text);
    check_json(text, bytes);
}

/* As an engine would that has nothing but ends of texts. */
static void play(api_call *call, byte_buffer *out)
{
    mla_error err = {0};
    bool is_done = false;
    call->is_submitted = true;
    for (int32_t i = 0; i < api_call_num_requests(call); i++) {
        engine_request *request = api_call_request(call, i);
        const engine_logprob top = {.id = request->prompt[0], .logprob = -1};
        const engine_event event = {.token = request->prompt[0],
                                    .logprob = -2,
                                    .top = &top,
                                    .num_top = request->num_top_logprobs > 0};
        const engine_result result = {
            .finish = ENGINE_LENGTH, .stop_id = -1, .stop_string = -1, .num_tokens = 1};
        FUZZ_CHECK(request->max_tokens >= 1 && request->num_prompt >= 1);
        FUZZ_CHECK(request->num_prompt + request->max_tokens <= 128);
        (void)request->on_token(request, &event);
        request->on_end(request, &result);
    }
    while (!is_done) {
        FUZZ_CHECK(api_call_has_news(call));
        FUZZ_CHECK(api_call_write(call, out, &is_done, &err) == MLA_OK);
    }
    FUZZ_CHECK(api_call_has_ended(call));
    if (!api_call_is_stream(call)) {
        check_json(out->data, out->num);
    } else {
        FUZZ_CHECK(out->num > 14 &&
                   memcmp(out->data + out->num - 14, "data: [DONE]\n\n", 14) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    static api_rig *rig;
    rig = rig ? rig : open_rig();
    if (num_bytes == 0) {
        return 0;
    }
    const api_settings *settings = &rig->settings;
    const char *body = (const char *)data + 1;
    size_t bytes = num_bytes - 1;
    api_call *call = NULL;
    api_failure failure = {.status = API_OK};
    byte_buffer out = {.context = rig->context};
    bool is_good = false;
    if (data[0] % 4 < 2) {
        api_kind kind = data[0] % 4 ? API_CHAT : API_COMPLETION;
        is_good = api_call_open(settings, kind, body, bytes, &call, &failure);
        if (is_good) {
            play(call, &out);
        }
    } else {
        is_good = data[0] % 4 == 2 ? api_tokenize(settings, body, bytes, &out, &failure)
                                   : api_detokenize(settings, body, bytes, &out, &failure);
        if (is_good) {
            check_json(out.data, out.num);
        }
    }
    if (!is_good) {
        check_failure(&failure);
    }
    api_call_close(&call);
    byte_buffer_free(&out);
    FUZZ_CHECK(mlai_ledger_now(settings->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER) ==
               rig->server_bytes);
    return 0;
}
