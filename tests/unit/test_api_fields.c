/* Every field of a body, one row each: taken, ignored, null, of another type, out of range, or
 * refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    };
    return cmocka_run_group_tests_name("api fields", tests, open_rig, close_rig);
}
