/* refused.c - known and not served: see refused.h. A value that asks for nothing (null, false,
 * "", [], {}) is no reason to refuse. */
#include "server/api/refused.h"

#include <string.h>

enum { FOR_COMPLETION = 1 << API_COMPLETION, FOR_CHAT = 1 << API_CHAT };
enum { FOR_BOTH = FOR_COMPLETION | FOR_CHAT };

static const struct refused_field {
    const char *name;
    int kinds;
    const char *neutral; /* a string that asks for nothing, too; NULL: none */
} refused[] = {
    {"tools", FOR_BOTH, NULL},
    {"functions", FOR_BOTH, NULL},
    {"function_call", FOR_BOTH, "none"},
    {"guided_json", FOR_BOTH, NULL},
    {"guided_regex", FOR_BOTH, NULL},
    {"guided_choice", FOR_BOTH, NULL},
    {"guided_grammar", FOR_BOTH, NULL},
    {"guided_decoding_backend", FOR_BOTH, NULL},
    {"guided_whitespace_pattern", FOR_BOTH, NULL},
    {"structured_outputs", FOR_BOTH, NULL},
    {"structural_tag", FOR_BOTH, NULL},
    {"bad_words", FOR_BOTH, NULL},
    {"allowed_token_ids", FOR_BOTH, NULL},
    {"prompt_logprobs", FOR_BOTH, NULL},
    {"logits_processors", FOR_BOTH, NULL},
    {"use_beam_search", FOR_BOTH, NULL},
    {"truncate_prompt_tokens", FOR_BOTH, NULL},
    {"prompt_embeds", FOR_COMPLETION, NULL},
    {"kv_transfer_params", FOR_BOTH, NULL},
    {"vllm_xargs", FOR_BOTH, NULL},
    {"mm_processor_kwargs", FOR_BOTH, NULL},
    {"suffix", FOR_COMPLETION, NULL},
    {"audio", FOR_CHAT, NULL},
    {"web_search_options", FOR_CHAT, NULL},
    {"documents", FOR_CHAT, NULL},
    {"chat_template", FOR_CHAT, NULL},
    {"continue_final_message", FOR_CHAT, NULL},
    {"echo", FOR_CHAT, NULL},
};

static bool asks_for_nothing(const json_t *value, const char *neutral)
{
    const char *text = json_string_value(value);
    return !value || json_is_null(value) || json_is_false(value) ||
           (text && (text[0] == 0 || (neutral && strcmp(text, neutral) == 0))) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static bool refuse(const api_fields *fields, const char *name)
{
    return api_fail(fields->failure, API_BAD_REQUEST, name, "unsupported_parameter",
                    "%s is %s, which is not supported by this server", name,
                    json_words_of(json_object_get(fields->object, name)).text);
}

/* Only text: {"type": "text"}. */
static bool check_format(const api_fields *fields)
{
    const json_t *format = NULL;
    if (!field_object(fields, "response_format", &format) || !format) {
        return !field_value(fields, "response_format");
    }
    const char *type = json_string_value(json_object_get(format, "type"));
    if (type && strcmp(type, "text") == 0) {
        return true;
    }
    return api_fail(
        fields->failure, API_BAD_REQUEST, "response_format", "unsupported_parameter",
        "response_format is of type %s; only \"text\" is supported by this server",
        json_words_of(json_object_get(format, "type")).text);
}

static bool check_tool_choice(const api_fields *fields)
{
    const json_t *choice = field_value(fields, "tool_choice");
    const char *text = json_string_value(choice);
    bool is_none = text && (strcmp(text, "none") == 0 || strcmp(text, "auto") == 0);
    return !choice || is_none || refuse(fields, "tool_choice");
}

static bool check_modalities(const api_fields *fields)
{
    const json_t *list = NULL;
    if (!field_array(fields, "modalities", &list)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!text || strcmp(text, "text") != 0) {
            return api_fail(fields->failure, API_BAD_REQUEST, "modalities",
                            "unsupported_parameter",
                            "modalities has %s; only \"text\" is supported by this server",
                            json_words_of(json_array_get(list, i)).text);
        }
    }
    return true;
}

/* Beam search is refused, so its penalty may only be the one that does nothing. */
static bool check_length_penalty(const api_fields *fields)
{
    const json_t *penalty = field_value(fields, "length_penalty");
    bool is_one = json_is_number(penalty) && json_number_value(penalty) == 1.0;
    return !penalty || is_one || refuse(fields, "length_penalty");
}

bool refused_fields_check(const api_fields *fields, api_kind kind)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const json_t *value = json_object_get(fields->object, refused[i].name);
        if (refused[i].kinds & 1 << kind && !asks_for_nothing(value, refused[i].neutral)) {
            return refuse(fields, refused[i].name);
        }
    }
    return check_format(fields) && check_tool_choice(fields) && check_modalities(fields) &&
           check_length_penalty(fields);
}
