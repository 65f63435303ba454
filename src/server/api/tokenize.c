/* tokenize.c - /tokenize and /detokenize: see simple.h. */
#include <string.h>

#include "server/api/body.h"
#include "server/api/model_name.h"
#include "server/api/option_lists.h"
#include "server/api/prompts.h"
#include "server/api/refused.h"
#include "server/api/simple.h"
#include "server/api/text.h"

/* What one of these requests has while it is answered. */
typedef struct word_call {
    const api_settings *settings;
    api_fields fields;
    api_memory memory;
    api_prompts prompts;
    api_text out;
} word_call;

typedef bool (*word_answer)(word_call *self);

static bool answer(const api_settings *settings, const json_t *body, word_answer make,
                   byte_buffer *out, api_failure *failure)
{
    mla_error err = {0};
    word_call self = {.settings = settings,
                      .fields = {body, "", failure},
                      .memory = {.ledger = settings->ledger},
                      .out = api_text_begin(out, &err)};
    bool is_good = model_name_check(settings, &self.fields) && make(&self);
    if (is_good && self.out.status != MLA_OK) {
        is_good = api_fail_of(failure, &err, NULL);
    }
    (void)api_text_end(&self.out);
    api_prompts_free(&self.prompts);
    api_memory_free(&self.memory);
    return is_good;
}

static bool answer_body(const api_settings *settings, const char *body, size_t bytes,
                        word_answer make, byte_buffer *out, api_failure *failure)
{
    json_t *read = NULL;
    json_scope before = json_scope_enter(settings->ledger, MLA_FOR_SERVER);
    bool is_good = api_body_read(settings, body, bytes, &read, failure) &&
                   answer(settings, read, make, out, failure);
    json_decref(read);
    json_scope_leave(before);
    return is_good;
}

static void write_ids(const api_prompt *prompt, api_text *out)
{
    for (int32_t i = 0; i < prompt->num; i++) {
        api_text_add(out, i > 0 ? "," : "");
        api_text_int(out, prompt->ids[i]);
    }
}

static void write_strings(const api_settings *settings, const api_prompt *prompt,
                          api_text *out)
{
    for (int32_t i = 0; i < prompt->num; i++) {
        size_t bytes = 0;
        const char *piece = tokenizer_bytes_of(engine_tokenizer_of(settings->engine),
                                               prompt->ids[i], &bytes);
        api_text_add(out, i > 0 ? "," : "");
        api_text_bytes_as_string(out, piece, bytes);
    }
}

static bool tokenize(word_call *self)
{
    bool has_strings = false;
    const api_settings *settings = self->settings;
    const api_fields *fields = &self->fields;
    bool is_chat = field_value(fields, "messages") != NULL;
    if (!refused_fields_check(fields, is_chat ? API_CHAT : API_COMPLETION) ||
        !field_bool(fields, "return_token_strs", &has_strings)) {
        return false;
    }
    if (!is_chat && field_value(fields, "prompt") &&
        !json_is_string(field_value(fields, "prompt"))) {
        return field_refuse(fields, "prompt", field_value(fields, "prompt"), "a string");
    }
    if (is_chat ? !api_messages_read(settings, fields, &self->memory, &self->prompts)
                : !api_prompts_read(settings, fields, 1, &self->memory, &self->prompts)) {
        return false;
    }
    const api_prompt *prompt = self->prompts.list;
    api_text_add(&self->out, "{\"count\":");
    api_text_int(&self->out, prompt->num);
    api_text_add(&self->out, ",\"max_model_len\":");
    api_text_int(&self->out, engine_limits_of(settings->engine)->max_context_tokens);
    api_text_add(&self->out, ",\"tokens\":[");
    write_ids(prompt, &self->out);
    api_text_add(&self->out, has_strings ? "],\"token_strs\":[" : "],\"token_strs\":null");
    if (has_strings) {
        write_strings(settings, prompt, &self->out);
        api_text_add(&self->out, "]");
    }
    api_text_add(&self->out, "}");
    return true;
}

static bool detokenize(word_call *self)
{
    const json_t *array = NULL;
    const int32_t *ids = NULL;
    if (!field_array(&self->fields, "tokens", &array)) {
        return false;
    }
    if (!array) {
        return api_fail(self->fields.failure, API_BAD_REQUEST, "tokens", NULL,
                        "tokens is missing");
    }
    if (!option_ids_read(self->settings, &self->fields, "tokens", array, &self->memory,
                         &ids)) {
        return false;
    }
    api_text_add(&self->out, "{\"prompt\":");
    api_text_tokens(&self->out, engine_tokenizer_of(self->settings->engine), ids,
                    json_array_size(array));
    api_text_add(&self->out, "}");
    return true;
}

bool api_tokenize(const api_settings *settings, const char *body, size_t bytes,
                  byte_buffer *out, api_failure *failure)
{
    return answer_body(settings, body, bytes, tokenize, out, failure);
}

bool api_detokenize(const api_settings *settings, const char *body, size_t bytes,
                    byte_buffer *out, api_failure *failure)
{
    return answer_body(settings, body, bytes, detokenize, out, failure);
}
