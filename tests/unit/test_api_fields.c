/* Every field of a body, one row each: taken, ignored, null, of another type, out of range, or
 * refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/context.h"
#include "support/api_rig.h"

static api_rig rig;

enum { BOTH = 2 };

typedef struct field_row {
    int kind; /* API_COMPLETION, API_CHAT, BOTH */
    const char *fields;
    const char *param; /* NULL: taken */
    const char *words; /* in the message; NULL: not looked at */
} field_row;

static void body_of(api_kind kind, const char *fields, char *out, size_t capacity)
{
    int num =
        snprintf(out, capacity, "{%s%s%s}",
                 kind == API_CHAT ? "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"
                                  : "\"prompt\":\"Hi\"",
                 fields[0] ? "," : "", fields);
    assert_true(num > 0 && (size_t)num < capacity);
}

/* NULL is the same as nothing else. */
static bool is_same(const char *text, const char *other)
{
    return text && other && strcmp(text, other) == 0;
}

static void check_refusal(const field_row *row, const api_failure *failure)
{
    if (failure->status != API_BAD_REQUEST || !is_same(failure->param, row->param) ||
        !is_same(failure->type, "invalid_request_error")) {
        fail_msg("%s: %d, %s, param %s: %s", row->fields, (int)failure->status,
                 failure->type, failure->param, failure->message);
    }
    if (row->words && !strstr(failure->message, row->words)) {
        fail_msg("%s: no \"%s\" in: %s", row->fields, row->words, failure->message);
    }
}

static void check_row(const field_row *row, api_kind kind)
{
    char body[1024];
    api_call *call = NULL;
    api_failure failure;
    body_of(kind, row->fields, body, sizeof body);
    bool is_open = api_call_open(&rig.settings, kind, body, strlen(body), &call, &failure);
    if (is_open && row->param) {
        fail_msg("%s is taken", row->fields);
    }
    if (!is_open && !row->param) {
        fail_msg("%s is refused: %s", row->fields, failure.message);
    }
    if (!is_open) {
        check_refusal(row, &failure);
    }
    api_call_close(&call);
    api_rig_check(&rig);
}

static void check_rows(const field_row *rows, size_t num)
{
    for (size_t i = 0; i < num; i++) {
        if (rows[i].kind == BOTH || rows[i].kind == API_CHAT) {
            check_row(&rows[i], API_CHAT);
        }
        if (rows[i].kind == BOTH || rows[i].kind == API_COMPLETION) {
            check_row(&rows[i], API_COMPLETION);
        }
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows)[0])

static void numbers_are_taken_in_their_ranges_and_refused_outside(void **state)
{
    (void)state;
    static const field_row rows[] = {
        {BOTH, "", NULL, NULL},
        {BOTH, "\"temperature\":0", NULL, NULL},
        {BOTH, "\"temperature\":2", NULL, NULL},
        {BOTH, "\"temperature\":0.7", NULL, NULL},
        {BOTH, "\"temperature\":null", NULL, NULL},
        {BOTH, "\"temperature\":2.01", "temperature",
         "temperature is 2.0099999999999998; it must be a number from 0 to 2"},
        {BOTH, "\"temperature\":-0.1", "temperature", NULL},
        {BOTH, "\"temperature\":\"1\"", "temperature", "is \"1\"; it must be a number"},
        {BOTH, "\"temperature\":true", "temperature", "is true"},
        {BOTH, "\"temperature\":[1]", "temperature", "is an array"},
        {BOTH, "\"top_p\":0", NULL, NULL},
        {BOTH, "\"top_p\":1", NULL, NULL},
        {BOTH, "\"top_p\":1.5", "top_p", "from 0 to 1"},
        {BOTH, "\"min_p\":0.1", NULL, NULL},
        {BOTH, "\"min_p\":-1", "min_p", "from 0 to 1"},
        {BOTH, "\"top_k\":-1", NULL, NULL},
        {BOTH, "\"top_k\":0", NULL, NULL},
        {BOTH, "\"top_k\":40", NULL, NULL},
        {BOTH, "\"top_k\":40.0", NULL, NULL},
        {BOTH, "\"top_k\":40.5", "top_k", "is 40.5; it must be an integer from -1"},
        {BOTH, "\"top_k\":-2", "top_k", NULL},
        {BOTH, "\"presence_penalty\":-2", NULL, NULL},
        {BOTH, "\"presence_penalty\":2.5", "presence_penalty", "from -2 to 2"},
        {BOTH, "\"frequency_penalty\":2", NULL, NULL},
        {BOTH, "\"frequency_penalty\":-3", "frequency_penalty", "is -3"},
        {BOTH, "\"repetition_penalty\":1.1", NULL, NULL},
        {BOTH, "\"repetition_penalty\":0", "repetition_penalty", "from 0.001 to 10"},
        {BOTH, "\"seed\":-5", NULL, NULL},
        {BOTH, "\"seed\":9223372036854775807", NULL, NULL},
        {BOTH, "\"seed\":1.5", "seed", NULL},
        {BOTH, "\"seed\":null", NULL, NULL},
        {BOTH, "\"seed\":1e300", "seed", NULL},
        {BOTH, "\"max_tokens\":1", NULL, NULL},
        {BOTH, "\"max_tokens\":0", "max_tokens", "is 0; it must be an integer from 1"},
        {BOTH, "\"max_tokens\":-1", "max_tokens", NULL},
        {BOTH, "\"max_tokens\":\"7\"", "max_tokens", NULL},
        {BOTH, "\"max_tokens\":1e12", "max_tokens", NULL},
        {BOTH, "\"max_completion_tokens\":7", NULL, NULL},
        {BOTH, "\"max_completion_tokens\":0", "max_completion_tokens", NULL},
        {BOTH, "\"max_tokens\":99999,\"max_completion_tokens\":7", NULL, NULL},
        {BOTH, "\"min_tokens\":3,\"max_tokens\":3", NULL, NULL},
        {BOTH, "\"min_tokens\":4,\"max_tokens\":3", "min_tokens", "min_tokens 4"},
        {BOTH, "\"min_tokens\":-1", "min_tokens", NULL},
        {BOTH, "\"n\":4", NULL, NULL},
        {BOTH, "\"n\":128", NULL, NULL},
        {BOTH, "\"n\":129", "n", "from 1 to 128"},
        {BOTH, "\"n\":0", "n", NULL},
        {BOTH, "\"n\":2,\"best_of\":2", NULL, NULL},
        {BOTH, "\"n\":2,\"best_of\":3", "best_of", "best_of is 3 and n is 2"},
        {BOTH, "\"best_of\":null", NULL, NULL},
        {BOTH, "\"priority\":-1000", NULL, NULL},
        {BOTH, "\"priority\":1001", "priority", "from -1000 to 1000"},
    };
    CHECK_ROWS(rows);
}

static void lists_are_taken_in_their_ranges_and_refused_outside(void **state)
{
    (void)state;
    static const field_row rows[] = {
        {BOTH, "\"stop\":\"\\n\\n\"", NULL, NULL},
        {BOTH, "\"stop\":[\"a\",\"b\"]", NULL, NULL},
        {BOTH, "\"stop\":[]", NULL, NULL},
        {BOTH, "\"stop\":null", NULL, NULL},
        {BOTH, "\"stop\":\"\"", "stop[0]", "is \"\"; it must be a string of 1 to 512"},
        {BOTH, "\"stop\":[\"a\",7]", "stop[1]", "is 7"},
        {BOTH, "\"stop\":{}", "stop", "an array of strings"},
        {BOTH,
         "\"stop\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"0\",\"1\","
         "\"2\",\"3\",\"4\",\"5\",\"6\",\"7\"]",
         "stop", "has 17 entries; 16 at most"},
        {BOTH, "\"stop_token_ids\":[1,4095]", NULL, NULL},
        {BOTH, "\"stop_token_ids\":[]", NULL, NULL},
        {BOTH, "\"stop_token_ids\":[4096]", "stop_token_ids[0]",
         "is 4096; it must be a token id from 0 to 4095"},
        {BOTH, "\"stop_token_ids\":[1,-1]", "stop_token_ids[1]", NULL},
        {BOTH, "\"stop_token_ids\":7", "stop_token_ids", "an array"},
        {BOTH, "\"logit_bias\":{\"1\":-100,\"2\":100}", NULL, NULL},
        {BOTH, "\"logit_bias\":{}", NULL, NULL},
        {BOTH, "\"logit_bias\":null", NULL, NULL},
        {BOTH, "\"logit_bias\":{\"1\":-101}", "logit_bias", "token 1 is -101"},
        {BOTH, "\"logit_bias\":{\"4096\":1}", "logit_bias", "from 0 to 4095"},
        {BOTH, "\"logit_bias\":{\"-1\":1}", "logit_bias", "the key \"-1\""},
        {BOTH, "\"logit_bias\":{\"\":1}", "logit_bias", "the key \"\""},
        {BOTH, "\"logit_bias\":{\"99999999999999999999\":1}", "logit_bias", NULL},
        {BOTH, "\"logit_bias\":{\"1x\":1}", "logit_bias", "the key \"1x\""},
        {BOTH, "\"logit_bias\":{\"1\":\"2\"}", "logit_bias", "is \"2\""},
        {BOTH, "\"logit_bias\":[1]", "logit_bias", "an object"},
    };
    CHECK_ROWS(rows);
}

static void flags_and_texts_are_taken_and_other_types_refused(void **state)
{
    (void)state;
    static const field_row rows[] = {
        {BOTH, "\"stream\":true", NULL, NULL},
        {BOTH, "\"stream\":null", NULL, NULL},
        {BOTH, "\"stream\":1", "stream", "is 1; it must be true or false"},
        {BOTH, "\"stream\":true,\"stream_options\":{}", NULL, NULL},
        {BOTH, "\"stream\":true,\"stream_options\":null", NULL, NULL},
        {BOTH, "\"stream_options\":null", NULL, NULL},
        {BOTH, "\"stream_options\":{\"include_usage\":true}", "stream_options",
         "needs stream"},
        {BOTH, "\"stream\":true,\"stream_options\":{\"include_usage\":true}", NULL, NULL},
        {BOTH, "\"stream\":true,\"stream_options\":{\"include_usage\":1}",
         "stream_options.include_usage", "is 1"},
        {BOTH, "\"stream\":true,\"stream_options\":{\"continuous_usage_stats\":\"x\"}",
         "stream_options.continuous_usage_stats", NULL},
        {BOTH, "\"stream\":true,\"stream_options\":[]", "stream_options", "an object"},
        {BOTH, "\"include_stop_str_in_output\":true", NULL, NULL},
        {BOTH, "\"include_stop_str_in_output\":0", "include_stop_str_in_output", NULL},
        {BOTH, "\"ignore_eos\":true", NULL, NULL},
        {BOTH, "\"ignore_eos\":\"true\"", "ignore_eos", NULL},
        {BOTH, "\"skip_special_tokens\":false", NULL, NULL},
        {BOTH, "\"skip_special_tokens\":[]", "skip_special_tokens", NULL},
        {BOTH, "\"add_special_tokens\":false", NULL, NULL},
        {BOTH, "\"add_special_tokens\":true", NULL, NULL},
        {BOTH, "\"add_special_tokens\":3", "add_special_tokens", NULL},
        {BOTH, "\"return_token_ids\":true", NULL, NULL},
        {BOTH, "\"return_token_ids\":2", "return_token_ids", NULL},
        {BOTH, "\"cache_salt\":\"tenant\"", NULL, NULL},
        {BOTH, "\"cache_salt\":\"\"", "cache_salt", "at least one byte"},
        {BOTH, "\"cache_salt\":7", "cache_salt", NULL},
        {BOTH, "\"request_id\":\"mine\"", NULL, NULL},
        {BOTH, "\"request_id\":\"\"", NULL, NULL},
        {BOTH, "\"request_id\":{}", "request_id", NULL},
        {BOTH, "\"model\":null", NULL, NULL},
        {BOTH, "\"model\":\"demo\"", NULL, NULL},
        {BOTH, "\"model\":7", "model", NULL},
        {API_CHAT, "\"logprobs\":true", NULL, NULL},
        {API_CHAT, "\"logprobs\":true,\"top_logprobs\":20", NULL, NULL},
        {API_CHAT, "\"logprobs\":true,\"top_logprobs\":21", "top_logprobs", "from 0 to 20"},
        {API_CHAT, "\"top_logprobs\":2", "top_logprobs", "needs logprobs"},
        {API_CHAT, "\"logprobs\":false,\"top_logprobs\":0", NULL, NULL},
        {API_CHAT, "\"logprobs\":5", "logprobs", "true or false"},
        {API_COMPLETION, "\"logprobs\":0", NULL, NULL},
        {API_COMPLETION, "\"logprobs\":20", NULL, NULL},
        {API_COMPLETION, "\"logprobs\":21", "logprobs", NULL},
        {API_COMPLETION, "\"logprobs\":true", "logprobs", "an integer from 0 to 20"},
        {API_COMPLETION, "\"echo\":true", NULL, NULL},
        {API_COMPLETION, "\"echo\":1", "echo", NULL},
        {API_COMPLETION, "\"echo\":true,\"logprobs\":1", "echo", "not supported"},
        {API_CHAT, "\"add_generation_prompt\":false", NULL, NULL},
        {API_CHAT, "\"add_generation_prompt\":\"no\"", "add_generation_prompt", NULL},
        {API_CHAT, "\"chat_template_kwargs\":{\"enable_thinking\":true}", NULL, NULL},
        {API_CHAT, "\"chat_template_kwargs\":7", "chat_template_kwargs", NULL},
        {API_CHAT, "\"chat_template_kwargs\":{\"messages\":[]}", "chat_template_kwargs",
         "has messages"},
    };
    CHECK_ROWS(rows);
}

static void what_is_known_and_not_served_is_refused_by_name(void **state)
{
    (void)state;
    static const field_row rows[] = {
        {BOTH, "\"tools\":[{\"type\":\"function\"}]", "tools", "not supported"},
        {BOTH, "\"tools\":[]", NULL, NULL},
        {BOTH, "\"tools\":null", NULL, NULL},
        {BOTH, "\"functions\":[{}]", "functions", NULL},
        {BOTH, "\"function_call\":\"none\"", NULL, NULL},
        {BOTH, "\"function_call\":\"auto\"", "function_call", NULL},
        {BOTH, "\"tool_choice\":\"none\"", NULL, NULL},
        {BOTH, "\"tool_choice\":\"auto\"", NULL, NULL},
        {BOTH, "\"tool_choice\":\"required\"", "tool_choice", "is \"required\""},
        {BOTH, "\"tool_choice\":{\"type\":\"function\"}", "tool_choice", NULL},
        {BOTH, "\"response_format\":{\"type\":\"text\"}", NULL, NULL},
        {BOTH, "\"response_format\":null", NULL, NULL},
        {BOTH, "\"response_format\":{\"type\":\"json_object\"}", "response_format",
         "\"json_object\"; only \"text\""},
        {BOTH, "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{}}",
         "response_format", "\"json_schema\""},
        {BOTH, "\"response_format\":{}", "response_format", NULL},
        {BOTH, "\"response_format\":\"text\"", "response_format", "an object"},
        {BOTH, "\"guided_json\":{\"a\":1}", "guided_json", NULL},
        {BOTH, "\"guided_regex\":\"a\"", "guided_regex", NULL},
        {BOTH, "\"guided_choice\":[\"a\"]", "guided_choice", NULL},
        {BOTH, "\"guided_grammar\":\"a\"", "guided_grammar", NULL},
        {BOTH, "\"guided_decoding_backend\":\"a\"", "guided_decoding_backend", NULL},
        {BOTH, "\"guided_whitespace_pattern\":\"a\"", "guided_whitespace_pattern", NULL},
        {BOTH, "\"structured_outputs\":{\"a\":1}", "structured_outputs", NULL},
        {BOTH, "\"structural_tag\":\"a\"", "structural_tag", NULL},
        {BOTH, "\"bad_words\":[\"a\"]", "bad_words", NULL},
        {BOTH, "\"bad_words\":[]", NULL, NULL},
        {BOTH, "\"allowed_token_ids\":[1]", "allowed_token_ids", NULL},
        {BOTH, "\"prompt_logprobs\":0", "prompt_logprobs", NULL},
        {BOTH, "\"logits_processors\":[\"a\"]", "logits_processors", NULL},
        {BOTH, "\"use_beam_search\":true", "use_beam_search", NULL},
        {BOTH, "\"use_beam_search\":false", NULL, NULL},
        {BOTH, "\"length_penalty\":1.0", NULL, NULL},
        {BOTH, "\"length_penalty\":0.5", "length_penalty", NULL},
        {BOTH, "\"truncate_prompt_tokens\":5", "truncate_prompt_tokens", NULL},
        {BOTH, "\"kv_transfer_params\":{\"a\":1}", "kv_transfer_params", NULL},
        {BOTH, "\"vllm_xargs\":{\"a\":1}", "vllm_xargs", NULL},
        {BOTH, "\"mm_processor_kwargs\":{\"a\":1}", "mm_processor_kwargs", NULL},
        {API_COMPLETION, "\"prompt_embeds\":\"a\"", "prompt_embeds", NULL},
        {API_COMPLETION, "\"suffix\":\"end\"", "suffix", NULL},
        {API_COMPLETION, "\"suffix\":null", NULL, NULL},
        {API_CHAT, "\"modalities\":[\"text\"]", NULL, NULL},
        {API_CHAT, "\"modalities\":[\"text\",\"audio\"]", "modalities", "has \"audio\""},
        {API_CHAT, "\"audio\":{\"voice\":\"a\"}", "audio", NULL},
        {API_CHAT, "\"web_search_options\":{\"a\":1}", "web_search_options", NULL},
        {API_CHAT, "\"documents\":[{}]", "documents", NULL},
        {API_CHAT, "\"chat_template\":\"{{ 1 }}\"", "chat_template", NULL},
        {API_CHAT, "\"continue_final_message\":true", "continue_final_message", NULL},
        {API_CHAT, "\"continue_final_message\":false", NULL, NULL},
        {API_CHAT, "\"echo\":true", "echo", NULL},
    };
    CHECK_ROWS(rows);
}

static void what_changes_no_answer_is_ignored_and_so_is_what_nobody_knows(void **state)
{
    (void)state;
    static const field_row rows[] = {
        {BOTH, "\"user\":\"me\"", NULL, NULL},
        {BOTH, "\"metadata\":{\"a\":\"b\"}", NULL, NULL},
        {BOTH, "\"store\":true", NULL, NULL},
        {BOTH, "\"service_tier\":\"auto\"", NULL, NULL},
        {BOTH, "\"reasoning_effort\":\"high\"", NULL, NULL},
        {BOTH, "\"parallel_tool_calls\":false", NULL, NULL},
        {BOTH, "\"no_such_field\":[[[{}]]]", NULL, NULL},
    };
    CHECK_ROWS(rows);
}

typedef struct body_row {
    api_kind kind;
    api_status status;
    const char *body, *param, *code, *words;
} body_row;

static void check_body(const body_row *row)
{
    api_call *call = NULL;
    api_failure failure = {.status = API_OK};
    bool is_open = api_call_open(&rig.settings, row->kind, row->body, strlen(row->body),
                                 &call, &failure);
    api_call_close(&call);
    assert_int_equal(is_open, row->status == API_OK);
    if (is_open) {
        return;
    }
    bool has_code = row->code ? failure.code && strcmp(failure.code, row->code) == 0
                              : failure.code == NULL;
    if (failure.status != row->status || !has_code || !is_same(failure.param, row->param) ||
        !strstr(failure.message, row->words)) {
        fail_msg("%.200s: %d, param %s, code %s: %s", row->body, (int)failure.status,
                 failure.param, failure.code ? failure.code : "null", failure.message);
    }
    api_rig_check(&rig);
}

#define MESSAGES(list) "{\"messages\":" list "}"
#define CONTENT(value) MESSAGES("[{\"role\":\"user\",\"content\":" value "}]")

static void prompts_are_taken_in_all_their_forms(void **state)
{
    (void)state;
    static const body_row rows[] = {
        {API_COMPLETION, API_OK, "{\"prompt\":\"a\"}", NULL, NULL, NULL},
        {API_COMPLETION, API_OK, "{\"prompt\":\"\"}", NULL, NULL, NULL}, /* BOS */
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":\"\",\"add_special_tokens\":false}",
         "prompt", NULL, "at least one token"},
        {API_COMPLETION, API_OK, "{\"prompt\":[\"a\",\"b\"]}", NULL, NULL, NULL},
        {API_COMPLETION, API_OK, "{\"prompt\":[1,2]}", NULL, NULL, NULL},
        {API_COMPLETION, API_OK, "{\"prompt\":[[1],[2,3]]}", NULL, NULL, NULL},
        {API_COMPLETION, API_OK, "{\"prompt\":[\"a\",[2,3]]}", NULL, NULL, NULL},
        {API_COMPLETION, API_BAD_REQUEST, "{}", "prompt", NULL, "missing"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":null}", "prompt", NULL, "missing"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[]}", "prompt", NULL, "not empty"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[[]]}", "prompt[0]", NULL,
         "not empty"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[[1],[]]}", "prompt[1]", NULL,
         "not empty"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":{}}", "prompt", NULL, "an object"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":7}", "prompt", NULL, "is 7"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[1,\"a\"]}", "prompt[1]", NULL,
         "is \"a\"; it must be a token id"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[\"a\",7]}", "prompt[1]", NULL,
         "is 7"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[4096]}", "prompt[0]", NULL,
         "from 0 to 4095"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[[0],[5,-1]]}", "prompt[1][1]", NULL,
         "is -1"},
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[\"a\",\"b\"],\"n\":128}", "prompt",
         NULL, "at most 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_body(&rows[i]);
    }
}

static void conversations_are_taken_and_what_is_wrong_has_a_name(void **state)
{
    (void)state;
    static const body_row rows[] = {
        {API_CHAT, API_OK, CONTENT("\"a\""), NULL, NULL, NULL},
        {API_CHAT, API_OK, CONTENT("\"\""), NULL, NULL, NULL},
        {API_CHAT, API_OK, CONTENT("[{\"type\":\"text\",\"text\":\"a\"}]"), NULL, NULL,
         NULL},
        {API_CHAT, API_BAD_REQUEST,
         CONTENT("[{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]"),
         "messages[0].content[0]", NULL, "\"image_url\""},
        {API_CHAT, API_BAD_REQUEST, CONTENT("[{\"type\":\"text\"}]"),
         "messages[0].content[0]", NULL, "only"},
        {API_CHAT, API_BAD_REQUEST, CONTENT("[]"), "messages[0].content", NULL, "an array"},
        {API_CHAT, API_BAD_REQUEST, CONTENT("null"), "messages[0].content", NULL, "null"},
        {API_CHAT, API_BAD_REQUEST, CONTENT("7"), "messages[0].content", NULL, "is 7"},
        {API_CHAT, API_BAD_REQUEST, "{}", "messages", NULL, "0 entries"},
        {API_CHAT, API_BAD_REQUEST, MESSAGES("[]"), "messages", NULL,
         "0 entries; 1 to 2048"},
        {API_CHAT, API_BAD_REQUEST, MESSAGES("{}"), "messages", NULL, "an array"},
        {API_CHAT, API_BAD_REQUEST, MESSAGES("[7]"), "messages[0]", NULL, "is 7"},
        {API_CHAT, API_BAD_REQUEST, MESSAGES("[{\"content\":\"a\"}]"), "messages[0].role",
         NULL, "missing"},
        {API_CHAT, API_BAD_REQUEST, MESSAGES("[{\"role\":\"boss\",\"content\":\"a\"}]"),
         "messages[0].role", NULL, "is \"boss\"; it must be system"},
        {API_CHAT, API_BAD_REQUEST,
         MESSAGES("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":7}]"),
         "messages[1].role", NULL, "is 7"},
        {API_CHAT, API_OK,
         MESSAGES(
             "[{\"role\":\"developer\",\"content\":\"a\"},{\"role\":\"user\",\"content\":"
             "\"b\"}]"),
         NULL, NULL, NULL},
        {API_CHAT, API_OK,
         MESSAGES("[{\"role\":\"tool\",\"content\":\"a\",\"tool_call_id\":\"x\"}]"), NULL,
         NULL, NULL},
        {API_CHAT, API_BAD_REQUEST,
         MESSAGES("[{\"role\":\"user\",\"content\":\"a\",\"name\":7}]"), "messages[0].name",
         NULL, "is 7"},
        {API_CHAT, API_BAD_REQUEST,
         MESSAGES("[{\"role\":\"assistant\",\"content\":\"a\",\"audio\":{}}]"),
         "messages[0].audio", NULL, "not supported"},
        {API_CHAT, API_BAD_REQUEST,
         MESSAGES("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":\"x\"}]"),
         "messages[0].tool_calls", NULL, "an array"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_body(&rows[i]);
    }
}

static void what_is_no_json_is_said_with_its_place(void **state)
{
    (void)state;
    static const body_row rows[] = {
        {API_CHAT, API_BAD_REQUEST, "", "", NULL, "the body is empty"},
        {API_CHAT, API_BAD_REQUEST, "{", "", NULL, "line 1, column 1"},
        {API_CHAT, API_BAD_REQUEST, "[]", "", NULL, "an array, not an object"},
        {API_CHAT, API_BAD_REQUEST, "null", "", NULL, "null, not an object"},
        {API_CHAT, API_BAD_REQUEST, "{\"a\":1}x", "", NULL, "not JSON"},
        {API_CHAT, API_BAD_REQUEST, "{\"a\":1,\"a\":2}", "", NULL, "duplicate"},
        {API_CHAT, API_BAD_REQUEST, "{\"a\":NaN}", "", NULL, "not JSON"},
        {API_CHAT, API_BAD_REQUEST, "{\"a\":1e999}", "", NULL, "overflow"},
        {API_CHAT, API_BAD_REQUEST, "{\"a\":\"\xff\"}", "", NULL, "not JSON"},
        {API_CHAT, API_BAD_REQUEST, "{\"a\":\"\\ud800\"}", "", NULL, "not JSON"},
        {API_CHAT, API_BAD_REQUEST, "{\"a\":\"\\u0000\"}", "", NULL, "not JSON"},
        {API_CHAT, API_BAD_REQUEST, CONTENT("\"\xc3\""), "", NULL, "not JSON"},
        {API_CHAT, API_NOT_FOUND, "{\"model\":\"other\"}", "model", "model_not_found",
         "\"other\" does not exist; this server has \"demo\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_body(&rows[i]);
    }
}

static void the_served_directory_is_a_name_of_the_model(void **state)
{
    (void)state;
    static const body_row rows[] = {
        {API_COMPLETION, API_OK, "{\"model\":\"" TEST_MODELS "/demo\",\"prompt\":\"a\"}",
         NULL, NULL, NULL},
        {API_COMPLETION, API_OK, "{\"model\":\"another\",\"prompt\":\"a\"}", NULL, NULL,
         NULL},
        {API_COMPLETION, API_OK, "{\"model\":\"demo\",\"prompt\":\"a\"}", NULL, NULL, NULL},
    };
    rig.settings.model_name = "another";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_body(&rows[i]);
    }
    rig.settings.model_name = "demo";
}

/* text repeated, between a beginning and an end. owned: free. */
static char *repeated(const char *start, const char *text, size_t times, const char *end)
{
    size_t bytes = strlen(start) + strlen(text) * times + strlen(end) + 1;
    char *made = malloc(bytes);
    assert_non_null(made);
    char *at = stpcpy(made, start);
    for (size_t i = 0; i < times; i++) {
        at = stpcpy(at, text);
    }
    (void)stpcpy(at, end);
    return made;
}

static void check_large(char *body, api_kind kind, const char *param, const char *code,
                        const char *words)
{
    const body_row row = {kind, API_BAD_REQUEST, body, param, code, words};
    uint64_t before = rig.context->ledger.cell[MLA_SPACE_HOST][MLA_FOR_SERVER].num_allocs;
    check_body(&row);
    /* refused before a value is made of it, or at least before it is encoded */
    uint64_t now = rig.context->ledger.cell[MLA_SPACE_HOST][MLA_FOR_SERVER].num_allocs;
    assert_true(now - before < 64);
    free(body);
}

static void what_is_obviously_too_much_is_refused_early(void **state)
{
    (void)state;
    check_large(repeated("{\"x\":", "[", 1000, ""), API_CHAT, "", NULL,
                "nests 1001 arrays and objects; 64 at most");
    check_large(repeated("{\"prompt\":[0", ",0", 100000, "]}"), API_COMPLETION, "", NULL,
                "values;");
    check_large(repeated("{\"x\":[", "[],", 100000, "[]]}"), API_CHAT, "", NULL, "values;");
    check_large(repeated("{\"prompt\":\"", "abcdefgh", 1 << 17, "\"}"), API_COMPLETION,
                "prompt", "context_length_exceeded", "1048576 bytes");
    check_large(repeated("{\"messages\":[{\"role\":\"user\",\"content\":\"", "abcdefgh",
                         1 << 17, "\"}]}"),
                API_CHAT, "messages", "context_length_exceeded",
                "maximum context length is 512");
}

static void what_cannot_fit_is_refused_with_numbers(void **state)
{
    (void)state;
    static const body_row rows[] = {
        {API_COMPLETION, API_BAD_REQUEST, "{\"prompt\":[1,2,3],\"max_tokens\":510}",
         "prompt", "context_length_exceeded",
         "maximum context length is 512 tokens. However, you requested 513 tokens (3 in "
         "the "
         "prompt, 510 in the completion), which is 1 too many. The largest max_tokens that "
         "fits is 509."},
        {API_COMPLETION, API_OK, "{\"prompt\":[1,2,3],\"max_tokens\":509}", NULL, NULL,
         NULL},
        {API_CHAT, API_OK, CONTENT("\"a\"") "", NULL, NULL, NULL},
        {API_CHAT, API_BAD_REQUEST,
         "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"max_tokens\":600}",
         "messages", "context_length_exceeded", "in the messages, 600"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_body(&rows[i]);
    }
}

static void answers_that_need_too_much_memory_are_refused(void **state)
{
    (void)state;
    const body_row row = {API_COMPLETION,
                          API_BAD_REQUEST,
                          "{\"prompt\":[1],\"n\":64,\"max_tokens\":500,\"logprobs\":20}",
                          "max_tokens",
                          NULL,
                          "64 choices of 500 tokens with 21 logprobs"};
    rig.settings.max_call_bytes = 1 << 20;
    check_body(&row);
    rig.settings.max_call_bytes = 0;
    const body_row fits = {row.kind, API_OK, row.body, NULL, NULL, NULL};
    check_body(&fits);
}

static void what_the_pool_can_never_hold_is_refused_with_numbers(void **state)
{
    (void)state;
    api_rig *small = calloc(1, sizeof *small);
    assert_non_null(small);
    const api_rig_options options = {
        .kv_bytes = 2 * engine_limits_of(rig.settings.engine)->page_bytes};
    static const char body[] = "{\"prompt\":[1,2,3],\"max_tokens\":200}";
    api_call *call = NULL;
    api_failure failure;
    api_rig_open(small, &options);
    assert_false(api_call_open(&small->settings, API_COMPLETION, body, strlen(body), &call,
                               &failure));
    assert_int_equal(failure.status, API_BAD_REQUEST);
    assert_string_equal(failure.code, "kv_capacity_exceeded");
    assert_string_equal(failure.param, "max_tokens");
    assert_non_null(strstr(failure.message,
                           "3 prompt tokens and 200 new ones need 4 pages of "
                           "64 tokens (required), the pool has 2 (available), "
                           "2 short (deficit). The largest max_tokens that "
                           "fits is 126."));
    /* by default as many as fit, however many that is */
    static const char plain[] = "{\"prompt\":[1,2,3]}";
    small->settings.max_call_bytes = 16 * sizeof(int32_t);
    assert_true(api_call_open(&small->settings, API_COMPLETION, plain, strlen(plain), &call,
                              &failure));
    assert_int_equal(api_call_request(call, 0)->max_tokens, 16);
    api_call_close(&call);
    api_rig_close(small);
    free(small);
}

static int open_rig(void **state)
{
    const api_rig_options options = {.max_requests = 2};
    (void)state;
    api_rig_open(&rig, &options);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    api_rig_close(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_taken_in_their_ranges_and_refused_outside),
        cmocka_unit_test(lists_are_taken_in_their_ranges_and_refused_outside),
        cmocka_unit_test(flags_and_texts_are_taken_and_other_types_refused),
        cmocka_unit_test(what_is_known_and_not_served_is_refused_by_name),
        cmocka_unit_test(what_changes_no_answer_is_ignored_and_so_is_what_nobody_knows),
        cmocka_unit_test(prompts_are_taken_in_all_their_forms),
        cmocka_unit_test(conversations_are_taken_and_what_is_wrong_has_a_name),
        cmocka_unit_test(what_is_no_json_is_said_with_its_place),
        cmocka_unit_test(the_served_directory_is_a_name_of_the_model),
        cmocka_unit_test(what_is_obviously_too_much_is_refused_early),
        cmocka_unit_test(what_cannot_fit_is_refused_with_numbers),
        cmocka_unit_test(what_the_pool_can_never_hold_is_refused_with_numbers),
        cmocka_unit_test(answers_that_need_too_much_memory_are_refused),
    };
    return cmocka_run_group_tests_name("api fields", tests, open_rig, close_rig);
}
