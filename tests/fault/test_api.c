/* Every allocation of a call fails, once and for good: opening it, and writing its reply. What
 * was asked for is refused as out of memory, nothing stays in the books, and the next call is
 * answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/api_rig.h"
#include "support/must.h"

static api_rig rig;

typedef struct scenario {
    api_kind kind;
    const char *body;
} scenario;

static const scenario scenarios[] = {
    {API_CHAT,
     "{\"messages\":[{\"role\":\"developer\",\"content\":\"a\"},{\"role\":\"user\","
     "\"content\":"
     "[{\"type\":\"text\",\"text\":\"Hello\"}]}],\"n\":2,\"logprobs\":true,\"top_"
     "logprobs\":2,"
     "\"stop\":[\"x\",\"\\u00e9\\n\\u00e9\\n\\u00e9\\n\\u00e9\\n\\u00e9\\n\"],\"stop_token_"
     "ids\":[7],\"logit_bias\":{\"1\":2},\"request_"
     "id\":"
     "\"mine\",\"chat_template_kwargs\":{\"a\":1},\"stream\":true,\"max_tokens\":3}"},
    {API_COMPLETION,
     "{\"prompt\":[\"The server\",[1,2]],\"echo\":true,\"n\":2,\"max_tokens\":"
     "12,\"ignore_eos\":true,\"return_token_ids\":true}"},
    {API_COMPLETION,
     "{\"prompt\":\"The server\",\"logprobs\":20,\"max_tokens\":8,\"stream\":"
     "true,\"stream_options\":{\"include_usage\":true}}"},
};

/* What became of one try. */
typedef enum outcome { ANSWERED, REFUSED, BROKE_OFF } outcome;

/* The client is told nothing of a reply that breaks off; the call ends like a cancelled one. */
static outcome write_all(api_call **call)
{
    mla_error err = {0};
    bool is_done = false;
    bool is_idle = false;
    mla_status status = MLA_OK;
    byte_buffer out = {.context = rig.context};
    api_call_submit(*call);
    while (!is_done && status == MLA_OK) {
        size_t before = out.num;
        status = api_call_write(*call, &out, &is_done, &err);
        assert_true(status == MLA_OK || (status == MLA_ERR_NO_MEMORY && out.num == before));
        must(engine_step(rig.settings.engine, &is_idle, &err), &err);
    }
    api_call_cancel(*call);
    api_rig_run(&rig);
    byte_buffer_free(&out);
    api_call_close(call);
    return status == MLA_OK ? ANSWERED : BROKE_OFF;
}

static outcome answer(const scenario *self)
{
    api_call *call = NULL;
    api_failure failure;
    if (!api_call_open(&rig.settings, self->kind, self->body, strlen(self->body), &call,
                       &failure)) {
        if (failure.status != API_UNAVAILABLE) {
            fail_msg("%d: %s", (int)failure.status, failure.message);
        }
        assert_string_equal(failure.code, "out_of_memory");
        return REFUSED;
    }
    return write_all(&call);
}

static void every_allocation_of_a_call_may_fail(void **state)
{
    (void)state;
    static const scenario after = {API_COMPLETION, "{\"prompt\":[1],\"max_tokens\":1}"};
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        for (int is_for_good = 0; is_for_good < 2; is_for_good++) {
            int64_t num_trials = 0;
            int64_t num[BROKE_OFF + 1] = {0};
            outcome last = REFUSED;
            while (last != ANSWERED) {
                rig.fails_on = is_for_good != 0;
                rig.fail_at = num_trials++;
                last = answer(&scenarios[i]);
                rig.fail_at = -1;
                num[last]++;
                api_rig_check(&rig);
                assert_int_equal(answer(&after), ANSWERED);
            }
            assert_true(num[REFUSED] > 20 && num[BROKE_OFF] > 0);
        }
    }
}

typedef bool (*endpoint)(const api_settings *settings, const char *body, size_t bytes,
                         byte_buffer *out, api_failure *failure);

#define TEN(text)   text text text text text text text text text text
#define LONG_PROMPT TEN(TEN("The server "))

static void every_allocation_of_the_simple_endpoints_may_fail(void **state)
{
    (void)state;
    static const struct row {
        endpoint of;
        const char *body;
    } rows[] = {
        {api_tokenize,
         "{\"prompt\":\"" LONG_PROMPT LONG_PROMPT "\",\"return_token_strs\":true}"},
        {api_tokenize, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}"},
        {api_detokenize, "{\"tokens\":[1,2,3]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool is_good = false;
        int64_t num_trials = 0;
        while (!is_good) {
            api_failure failure;
            byte_buffer out = {.context = rig.context};
            rig.fail_at = num_trials++;
            is_good = rows[i].of(&rig.settings, rows[i].body, strlen(rows[i].body), &out,
                                 &failure);
            rig.fail_at = -1;
            assert_true(is_good || failure.status == API_UNAVAILABLE);
            assert_true(is_good || out.num == 0);
            byte_buffer_free(&out);
            api_rig_check(&rig);
        }
        assert_true(num_trials > 5);
    }
}

static int open_rig(void **state)
{
    const api_rig_options options = {.max_requests = 4};
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
        cmocka_unit_test(every_allocation_of_a_call_may_fail),
        cmocka_unit_test(every_allocation_of_the_simple_endpoints_may_fail),
    };
    return cmocka_run_group_tests_name("api", tests, open_rig, close_rig);
}
