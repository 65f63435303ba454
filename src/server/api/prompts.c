/* prompts.c - the prompts of a completion: see prompts.h. */
#include "server/api/prompts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "server/api/option_lists.h"

enum { NAME_BYTES = 32 };

void api_prompts_free(api_prompts *prompts)
{
    for (int32_t i = 0; i < prompts->num; i++) {
        token_list_free(&prompts->list[i].encoded);
    }
    *prompts = (api_prompts){.num = 0};
}

size_t api_longest_token(const tokenizer *words)
{
    size_t longest = 1;
    for (int32_t id = 0; id < tokenizer_vocab_size(words); id++) {
        size_t bytes = 0;
        (void)tokenizer_bytes_of(words, id, &bytes);
        longest = bytes > longest ? bytes : longest;
    }
    return longest;
}

bool api_prompt_may_fit(const api_settings *settings, size_t bytes, const char *param,
                        api_failure *failure)
{
    int64_t context = engine_limits_of(settings->engine)->max_context_tokens;
    size_t longest = settings->longest_token_bytes;
    if (longest == 0 || bytes / longest <= (size_t)context) {
        return true;
    }
    return api_fail(failure, API_BAD_REQUEST, param, "context_length_exceeded",
                    "This model's maximum context length is %lld tokens, and the %zu bytes "
                    "of the prompt are at least %zu tokens.",
                    (long long)context, bytes, bytes / longest);
}

static bool encode(const api_settings *settings, const json_t *value, bool adds_special,
                   const char *name, const api_fields *fields, api_prompt *out)
{
    const tokenizer *words = engine_tokenizer_of(settings->engine);
    unsigned flags = TOKENIZER_PARSE_SPECIAL;
    mla_error err = {0};
    if (adds_special && tokenizer_adds_bos(words)) {
        flags |= TOKENIZER_ADD_BOS;
    }
    out->text = json_string_value(value);
    out->bytes = json_string_length(value);
    if (!api_prompt_may_fit(settings, out->bytes, name, fields->failure)) {
        return false;
    }
    if (tokenizer_encode(words, out->text, out->bytes, flags, &out->encoded, &err) !=
        MLA_OK) {
        return api_fail_of(fields->failure, &err, name);
    }
    out->ids = out->encoded.ids;
    out->num = (int32_t)out->encoded.num;
    return true;
}

static bool read_one(const api_settings *settings, const api_fields *fields,
                     const json_t *value, const char *name, api_memory *memory,
                     api_prompt *out)
{
    bool adds_special = true;
    if (json_is_string(value)) {
        return field_bool(fields, "add_special_tokens", &adds_special) &&
               encode(settings, value, adds_special, name, fields, out) &&
               (out->num > 0 ||
                field_refuse(fields, name, value, "a text of at least one token"));
    }
    if (!json_is_array(value) || json_array_size(value) == 0 ||
        json_array_size(value) > INT_MAX) {
        return field_refuse(fields, name, value,
                            "a string, an array of token ids, or an array of either, and "
                            "not empty");
    }
    out->num = (int32_t)json_array_size(value);
    return option_ids_read(settings, fields, name, value, memory, &out->ids);
}

static bool take_list(const api_fields *fields, size_t num, api_memory *memory,
                      api_prompts *out)
{
    mla_error err = {0};
    void *list = NULL;
    if (api_memory_take(memory, num, sizeof(api_prompt), "the prompts of a request", &list,
                        &err) != MLA_OK) {
        return api_fail_of(fields->failure, &err, NULL);
    }
    memset(list, 0, num * sizeof(api_prompt));
    *out = (api_prompts){.list = list, .num = (int32_t)num};
    return true;
}

static bool read_many(const api_settings *settings, const api_fields *fields,
                      const json_t *array, api_memory *memory, api_prompts *out)
{
    char name[NAME_BYTES];
    if (!take_list(fields, json_array_size(array), memory, out)) {
        return false;
    }
    for (int32_t i = 0; i < out->num; i++) {
        (void)snprintf(name, sizeof name, "prompt[%d]", i);
        if (!read_one(settings, fields, json_array_get(array, (size_t)i), name, memory,
                      &out->list[i])) {
            return false;
        }
    }
    return true;
}

bool api_prompts_read(const api_settings *settings, const api_fields *fields, int32_t max,
                      api_memory *memory, api_prompts *out)
{
    const json_t *value = field_value(fields, "prompt");
    const json_t *first = json_array_get(value, 0);
    if (!value) {
        return api_fail(fields->failure, API_BAD_REQUEST, "prompt", NULL,
                        "prompt is missing");
    }
    if (!json_is_string(first) && !json_is_array(first)) { /* one */
        return take_list(fields, 1, memory, out) &&
               read_one(settings, fields, value, "prompt", memory, out->list);
    }
    if (json_array_size(value) > (size_t)max) {
        return api_fail(fields->failure, API_BAD_REQUEST, "prompt", NULL,
                        "prompt has %zu prompts; with this n, at most %d",
                        json_array_size(value), max);
    }
    return read_many(settings, fields, value, memory, out);
}
