/* Who runs when: what can never fit is refused with numbers, what fits later waits, nobody is
 * passed for ever, nothing that runs is disturbed; and how an engine dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/demo.h"
#include "support/tiny_model.h"

enum { CONTEXT = 500, MAX_LOG = 256, PAGE = 64 };

static tiny_model tiny;
static int32_t prompt[CONTEXT];

static int start(void **state)
{
    (void)state;
    tiny = tiny_model_write();
    for (int32_t i = 0; i < CONTEXT; i++) {
        prompt[i] = (i * i * 7 + 11 * i) % 256;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    tiny_model_remove(&tiny);
    return 0;
}

static demo open_engine(int32_t max_requests, int32_t num_pages, drafter *guesser)
{
    return demo_open(&(demo_options){.dir = tiny.dir,
                                     .threads = 1,
                                     .max_requests = max_requests,
                                     .max_context = CONTEXT,
                                     .kv_bytes = (uint64_t)num_pages * PAGE * 2 * 80 * 4,
                                     .drafter = guesser,
                                     .draft_tokens = guesser ? 4 : 0});
}

/* What happened, in order: each request's name at its first token and at its end. */
static char history[MAX_LOG];
static size_t num_history;

typedef struct named {
    engine_request request;
    engine_result result;
    int64_t num_seen;
    char name;
    bool has_ended;
} named;

static void note(char what)
{
    assert_true(num_history + 1 < MAX_LOG);
    history[num_history++] = what;
    history[num_history] = 0;
}

static bool note_token(engine_request *request, const engine_event *event)
{
    named *self = request->user;
    if (event->index == 0) {
        note(self->name);
    }
    self->num_seen++;
    return true;
}

static void note_end(engine_request *request, const engine_result *result)
{
    named *self = request->user;
    assert_false(self->has_ended);
    self->has_ended = true;
    self->result = *result;
}

static void submit(const demo *opened, named *self, char name, int32_t num_prompt,
                   int64_t max_tokens, int32_t priority)
{
    mla_error err = {0};
    *self = (named){.name = name,
                    .request = {.prompt = prompt,
                                .num_prompt = num_prompt,
                                .max_tokens = max_tokens,
                                .priority = priority,
                                .ignores_eos = true,
                                .on_token = note_token,
                                .on_end = note_end,
                                .user = self}};
    must(engine_check(opened->engine, &self->request, NULL, &err), &err);
    engine_submit(opened->engine, &self->request);
}

static void step(const demo *opened, int32_t times)
{
    bool is_idle = false;
    mla_error err = {0};
    for (int32_t i = 0; i < times && !is_idle; i++) {
        must(engine_step(opened->engine, &is_idle, &err), &err);
    }
}

static void begin_history(void)
{
    num_history = 0;
    history[0] = 0;
}

static void what_can_never_fit_is_refused_with_the_largest_that_does(void **state)
{
    (void)state;
    demo opened = open_engine(2, 3, NULL); /* 193 tokens, the last of which has no row */
    engine_request request = {.prompt = prompt, .num_prompt = 100, .max_tokens = 94};
    engine_misfit misfit = {0};
    engine_result result;
    mla_error err = {0};
    assert_int_equal(engine_check(opened.engine, &request, &misfit, &err),
                     MLA_ERR_BUFFER_SMALL);
    assert_string_equal(
        err.message, "the prompt of 100 tokens and 94 new ones need 4 pages of 64 tokens "
                     "and the pool has 3: 1 short; the most new tokens that fit is 93");
    assert_false(misfit.is_context);
    assert_int_equal(misfit.required, 4);
    assert_int_equal(misfit.available, 3);
    assert_int_equal(misfit.largest_max_tokens, 93);
    request.max_tokens = misfit.largest_max_tokens;
    request.ignores_eos = true;
    must(engine_run(opened.engine, &request, 1, &result, &err), &err);
    assert_int_equal(result.num_tokens, 93);
    request = (engine_request){.prompt = prompt, .num_prompt = 300, .max_tokens = 201};
    assert_int_equal(engine_check(opened.engine, &request, &misfit, &err),
                     MLA_ERR_BUFFER_SMALL);
    assert_true(misfit.is_context);
    assert_int_equal(misfit.required, 501);
    assert_int_equal(misfit.available, 500);
    assert_int_equal(misfit.largest_max_tokens, 200);
    demo_close(&opened);
}

static void what_fits_later_waits_and_disturbs_nobody(void **state)
{
    (void)state;
    demo opened = open_engine(3, 4, NULL);
    named a;
    named b;
    begin_history();
    submit(&opened, &a, 'a', 100, 100, 0); /* all four pages */
    submit(&opened, &b, 'b', 100, 100, 0);
    step(&opened, 50);
    engine_stats stats;
    engine_stats_take(opened.engine, &stats);
    assert_int_equal(stats.num_running, 1);
    assert_int_equal(stats.num_waiting, 1);
    assert_int_equal(stats.pages_reserved + stats.pages_used, 4);
    step(&opened, 1000);
    assert_string_equal(history, "ab");
    assert_int_equal(a.num_seen, 100);
    assert_int_equal(b.num_seen, 100);
    assert_true(b.result.queued_ns > a.result.queued_ns);
    demo_close(&opened);
}

static void the_queue_goes_by_priority_then_by_arrival(void **state)
{
    (void)state;
    demo opened = open_engine(1, 8, NULL);
    named all[5];
    const int32_t priorities[5] = {0, 1, 0, -1, 0};
    begin_history();
    for (int32_t i = 0; i < 5; i++) {
        submit(&opened, &all[i], (char)('a' + i), 10, 3, priorities[i]);
    }
    step(&opened, 1000);
    assert_string_equal(history, "daceb");
    demo_close(&opened);
}

static void a_head_start_is_bounded(void **state)
{
    (void)state;
    static named urgent[100];
    demo opened = open_engine(1, 8, NULL);
    named patient;
    begin_history();
    submit(&opened, &patient, 'p', 10, 1, 1);
    for (int32_t i = 0; i < 100; i++) {
        submit(&opened, &urgent[i], '.', 10, 1, 0);
    }
    step(&opened, 1000);
    assert_int_equal(strchr(history, 'p') - history, 63); /* of the 64 places of a step */
    demo_close(&opened);
}

static engine *watched;

static void look_at_the_end(engine_request *request, const engine_result *result)
{
    engine_stats stats;
    (void)request;
    engine_stats_take(watched, &stats);
    assert_int_equal(stats.num_running, 0);
    assert_int_equal(stats.pages_used, 0);
    assert_int_equal(stats.num_ended[result->finish], 1);
    note('.');
}

static void who_is_told_of_an_end_finds_its_pages_free(void **state)
{
    (void)state;
    demo opened = open_engine(1, 8, NULL);
    named one;
    begin_history();
    submit(&opened, &one, 'a', 10, 3, 0);
    one.request.on_end = look_at_the_end;
    watched = opened.engine;
    step(&opened, 10);
    assert_string_equal(history, "a.");
    demo_close(&opened);
}

static void small_requests_pass_a_large_one_a_bounded_number_of_times(void **state)
{
    (void)state;
    static named small[60];
    demo opened = open_engine(4, 4, NULL);
    named first;
    named large;
    begin_history();
    submit(&opened, &first, 'f', 60, 69, 0); /* two pages, for long */
    step(&opened, 1);
    submit(&opened, &large, 'L', 200, 50, 0); /* all four */
    for (int32_t i = 0; i < 60; i++) {
        submit(&opened, &small[i], '.', 10, 2, 0); /* one each */
    }
    step(&opened, 1000);
    const char *at = strchr(history, 'L');
    assert_non_null(at);
    assert_in_range(at - history, 2, 1 + 16); /* f, and those that passed */
    assert_int_equal(strlen(history), 62);
    demo_close(&opened);
}

static void a_short_prompt_passes_a_long_one_and_the_long_one_still_ends(void **state)
{
    (void)state;
    static named brief[40];
    demo opened = open_engine(8, 40, NULL);
    named busy;
    named large;
    begin_history();
    submit(&opened, &busy, 'b', 5, 200, 0); /* writes, so pieces are small */
    step(&opened, 2);
    submit(&opened, &large, 'L', 450, 5, 0);
    step(&opened, 1);
    for (int32_t i = 0; i < 40; i++) {
        submit(&opened, &brief[i], '.', 60, 1, 0);
        step(&opened, 1);
    }
    step(&opened, 1000);
    const char *at = strchr(history, 'L');
    assert_non_null(at);
    assert_in_range(at - history, 4, 36); /* neither first nor last of 42 */
    demo_close(&opened);
}

static void a_cancelled_request_ends_wherever_it_is(void **state)
{
    (void)state;
    demo opened = open_engine(1, 8, NULL);
    named all[3];
    begin_history();
    submit(&opened, &all[0], 'a', 400, 50, 0);
    submit(&opened, &all[1], 'b', 10, 5, 0);
    submit(&opened, &all[2], 'c', 10, 5, 0);
    step(&opened, 1); /* a is in its prompt */
    engine_cancel(opened.engine, &all[1].request);
    engine_cancel(opened.engine, &all[0].request);
    step(&opened, 1);
    assert_true(all[1].has_ended && all[1].result.finish == ENGINE_CANCELLED);
    assert_true(all[0].has_ended && all[0].result.finish == ENGINE_CANCELLED);
    assert_int_equal(all[0].num_seen, 0);
    step(&opened, 1);
    engine_cancel(opened.engine, &all[2].request); /* writes */
    step(&opened, 1);
    assert_int_equal(all[2].result.finish, ENGINE_CANCELLED);
    assert_in_range(all[2].num_seen, 1, 4);
    engine_cancel(opened.engine, &all[2].request); /* late: nothing happens */
    step(&opened, 2);
    demo_close(&opened);
}

/* --- an engine that dies */

static mla_status propose_once(drafter *self, draft *drafts, int32_t num, mla_error *err)
{
    static int32_t times;
    (void)self;
    (void)drafts;
    (void)num;
    MLAI_CHECK(times++ < 3, MLA_ERR_DEVICE, "the drafter fell off its branch");
    return MLA_OK;
}

static void a_failed_step_ends_every_request_once_and_the_engine(void **state)
{
    (void)state;
    drafter broken = {.propose = propose_once};
    demo opened = open_engine(2, 8, &broken);
    named all[4];
    bool is_idle = false;
    mla_error err = {0};
    mla_status status = MLA_OK;
    begin_history();
    for (int32_t i = 0; i < 3; i++) {
        submit(&opened, &all[i], (char)('a' + i), 10, 50, 0);
    }
    for (int32_t i = 0; i < 10 && status == MLA_OK; i++) {
        status = engine_step(opened.engine, &is_idle, &err);
    }
    assert_int_equal(status, MLA_ERR_DEVICE);
    assert_true(is_idle);
    for (int32_t i = 0; i < 3; i++) {
        assert_true(all[i].has_ended && all[i].result.finish == ENGINE_FAILED);
    }
    submit(&opened, &all[3], 'd', 10, 5, 0);
    assert_int_equal(engine_step(opened.engine, &is_idle, &err), MLA_ERR_STATE);
    assert_true(all[3].has_ended && all[3].result.finish == ENGINE_FAILED);
    demo_close(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_never_fit_is_refused_with_the_largest_that_does),
        cmocka_unit_test(what_fits_later_waits_and_disturbs_nobody),
        cmocka_unit_test(the_queue_goes_by_priority_then_by_arrival),
        cmocka_unit_test(a_head_start_is_bounded),
        cmocka_unit_test(who_is_told_of_an_end_finds_its_pages_free),
        cmocka_unit_test(small_requests_pass_a_large_one_a_bounded_number_of_times),
        cmocka_unit_test(a_short_prompt_passes_a_long_one_and_the_long_one_still_ends),
        cmocka_unit_test(a_cancelled_request_ends_wherever_it_is),
        cmocka_unit_test(a_failed_step_ends_every_request_once_and_the_engine),
    };
    return cmocka_run_group_tests(tests, start, end);
}
