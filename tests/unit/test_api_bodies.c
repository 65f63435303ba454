/* Whole bodies: prompts and conversations in all their forms, what is no JSON, what is too much
 * and what can never fit. */
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

/* NULL is the same as nothing else. */
static bool is_same(const char *text, const char *other)
{
    return text && other && strcmp(text, other) == 0;
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
        cmocka_unit_test(prompts_are_taken_in_all_their_forms),
        cmocka_unit_test(conversations_are_taken_and_what_is_wrong_has_a_name),
        cmocka_unit_test(what_is_no_json_is_said_with_its_place),
        cmocka_unit_test(the_served_directory_is_a_name_of_the_model),
        cmocka_unit_test(what_is_obviously_too_much_is_refused_early),
        cmocka_unit_test(what_cannot_fit_is_refused_with_numbers),
        cmocka_unit_test(answers_that_need_too_much_memory_are_refused),
        cmocka_unit_test(what_the_pool_can_never_hold_is_refused_with_numbers),
    };
    return cmocka_run_group_tests_name("api bodies", tests, open_rig, close_rig);
}
