/* The mailboxes of a call under two threads: one writes as the engine does, the other reads,
 * streams and closes at once when all has ended. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/api/call_parts.h"
#include "support/api_rig.h"
#include "support/must.h"
#include "support/random.h"

enum { CHOICES = 8, TOKENS = 300, NUM_TOP = 2, ROUNDS = 20 };

static api_rig rig;

typedef struct writer {
    engine_request *requests[CHOICES];
    int32_t ids[CHOICES][TOKENS];
} writer;

static void write_token(const writer *self, int32_t choice, int32_t index)
{
    const engine_logprob top[NUM_TOP] = {{self->ids[choice][index], -1}, {3, -2}};
    const engine_event event = {.token = self->ids[choice][index],
                                .index = index,
                                .logprob = -1,
                                .top = top,
                                .num_top = index % (NUM_TOP + 1)};
    (void)self->requests[choice]->on_token(self->requests[choice], &event);
}

static void *write_all(void *user)
{
    const writer *self = user;
    for (int32_t index = 0; index < TOKENS; index++) {
        for (int32_t choice = 0; choice < CHOICES; choice++) {
            write_token(self, choice, index);
        }
    }
    for (int32_t choice = 0; choice < CHOICES; choice++) {
        const engine_result result = {.finish = ENGINE_LENGTH,
                                      .stop_id = -1,
                                      .stop_string = -1,
                                      .num_tokens = TOKENS};
        self->requests[choice]->on_end(self->requests[choice], &result);
    }
    return NULL;
}

/* The text of the ids, quoted as in the reply. */
static void check_texts(const writer *self, const byte_buffer *out)
{
    char *all = api_text_of(out);
    for (int32_t choice = 0; choice < CHOICES; choice++) {
        mla_error err = {0};
        byte_buffer expected = {.context = rig.context};
        api_text text = api_text_begin(&expected, &err);
        api_text_add(&text, "\"text\":");
        api_text_tokens(&text, rig.words, self->ids[choice], TOKENS);
        api_text_add(&text, ",");
        api_text_bytes(&text, "", 1);
        must(api_text_end(&text), &err);
        assert_non_null(strstr(all, expected.data));
        byte_buffer_free(&expected);
    }
    free(all);
}

static void check_num_events(const byte_buffer *out)
{
    size_t num = 0;
    for (size_t i = 0; i + 6 <= out->num; i++) {
        num += memcmp(out->data + i, "data: ", 6) == 0;
    }
    assert_true(num >= CHOICES + 1);
    assert_memory_equal(out->data + out->num - 14, "data: [DONE]\n\n", 14);
}

static void read_all(api_call **call, writer *self, bool is_stream)
{
    pthread_t thread;
    mla_error err = {0};
    bool is_done = false;
    byte_buffer out = {.context = rig.context};
    (*call)->is_submitted = true;
    for (int32_t i = 0; i < CHOICES; i++) {
        self->requests[i] = api_call_request(*call, i);
        api_mailbox_submit(&(*call)->choices[i].mail);
    }
    assert_int_equal(pthread_create(&thread, NULL, write_all, self), 0);
    while (!is_done || !api_call_has_ended(*call)) {
        (void)api_call_count(*call);
        must(api_call_write(*call, &out, &is_done, &err), &err);
    }
    api_call_close(call); /* while the writer may still be on its way out */
    if (is_stream) {
        check_num_events(&out);
    } else {
        check_texts(self, &out);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    byte_buffer_free(&out);
    api_rig_check(&rig);
}

static void nothing_is_lost_between_two_threads(void **state)
{
    (void)state;
    static const char stream[] =
        "{\"prompt\":[1],\"n\":8,\"max_tokens\":300,\"logprobs\":2,"
        "\"skip_special_tokens\":false,\"stream\":true}";
    static const char whole[] = "{\"prompt\":[1],\"n\":8,\"max_tokens\":300,"
                                "\"skip_special_tokens\":false}";
    rng random = rng_start("api mailbox");
    writer *self = calloc(1, sizeof *self);
    assert_non_null(self);
    for (int round = 0; round < ROUNDS; round++) {
        const char *body = round % 2 ? stream : whole;
        api_call *call = NULL;
        api_failure failure;
        for (int32_t i = 0; i < CHOICES * TOKENS; i++) {
            self->ids[i / TOKENS][i % TOKENS] = (int32_t)rng_between(&random, 0, 4095);
        }
        assert_true(api_call_open(&rig.settings, API_COMPLETION, body, strlen(body), &call,
                                  &failure));
        read_all(&call, self, round % 2);
    }
    free(self);
    assert_int_equal(atomic_load(&rig.metrics.choices_open), 0);
    assert_true(atomic_load(&rig.num_wakes) >= (int64_t)ROUNDS * CHOICES * (TOKENS + 1));
}

enum { WORKERS = 4, OPENS = 60 };

/* As worker threads do; what each is refused, or gets, is its own. */
static void *open_and_close(void *user)
{
    static const char *const bodies[] = {
        ("{\"messages\":[{\"role\":\"developer\",\"content\":\"a\"},{\"role\":\"user\","
         "\"content\":\"Hello\"}],\"n\":3,\"stop\":[\"x\"]}"),
        "{\"prompt\":[\"The server\",[1,2,3]],\"logprobs\":3,\"echo\":false}",
        "{\"prompt\":\"The server\",\"max_tokens\":100000}",
        "{\"messages\":7}",
    };
    static const bool is_good[][2] = {
        {false, true}, {true, false}, {false, false}, {false, false}};
    int64_t num_wrong = 0;
    (void)user;
    for (int i = 0; i < OPENS; i++) {
        api_call *call = NULL;
        api_failure failure;
        api_kind kind = i % 2 ? API_CHAT : API_COMPLETION;
        const char *body = bodies[i / 2 % 4];
        bool is_open =
            api_call_open(&rig.settings, kind, body, strlen(body), &call, &failure);
        num_wrong += is_open != is_good[i / 2 % 4][i % 2];
        api_call_close(&call);
    }
    return (void *)(intptr_t)num_wrong;
}

static void calls_are_opened_on_several_threads_at_once(void **state)
{
    pthread_t threads[WORKERS];
    (void)state;
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        void *num_wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &num_wrong), 0);
        assert_null(num_wrong);
    }
    api_rig_check(&rig);
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
        cmocka_unit_test(nothing_is_lost_between_two_threads),
        cmocka_unit_test(calls_are_opened_on_several_threads_at_once),
    };
    return cmocka_run_group_tests_name("api mailbox", tests, open_rig, close_rig);
}
