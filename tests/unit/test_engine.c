/* What an engine and a model refuse, with the numbers in the sentence, and how requests end;
 * on a checkpoint of a few kilobytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/demo.h"
#include "support/tiny_model.h"

enum { CONTEXT = 40 };

static tiny_model tiny;
static demo opened;
static const int32_t prompt[CONTEXT + 1] = {TINY_BOS, 1, 2, 3};

static int start(void **state)
{
    (void)state;
    tiny = tiny_model_write();
    opened = demo_open(&(demo_options){
        .dir = tiny.dir, .threads = 1, .max_requests = 2, .max_context = CONTEXT});
    return 0;
}

static int end(void **state)
{
    (void)state;
    demo_close(&opened);
    tiny_model_remove(&tiny);
    return 0;
}

static engine_request greedy_request(int32_t num_prompt, int64_t max_tokens)
{
    return (engine_request){
        .prompt = prompt, .num_prompt = num_prompt, .max_tokens = max_tokens};
}

static int num_tokens_seen;

static bool count_token(engine_request *request, const engine_event *event)
{
    (void)request;
    (void)event;
    num_tokens_seen++;
    return true;
}

/* The second of two requests is refused, and nothing runs. */
static void check_refused_as(mla_status wanted, engine_request bad, const char *part)
{
    engine_request requests[2] = {greedy_request(3, 2), bad};
    engine_result results[2];
    mla_error err = {0};
    num_tokens_seen = 0;
    requests[0].on_token = count_token;
    assert_int_equal(engine_run(opened.engine, requests, 2, results, &err), wanted);
    assert_int_equal(num_tokens_seen, 0);
    bool is_named = strncmp(err.message, "request 1: ", 11) == 0 && err.message[11] != ':';
    if (!is_named || !strstr(err.message, part)) {
        fail_msg("'%s' does not say '%s' of request 1", err.message, part);
    }
}

static void check_refused(engine_request bad, const char *part)
{
    check_refused_as(MLA_ERR_ARGUMENT, bad, part);
}

static void requests_that_do_not_fit_are_refused_with_both_numbers(void **state)
{
    (void)state;
    check_refused_as(MLA_ERR_BUFFER_SMALL, greedy_request(3, CONTEXT - 2),
                     "3 tokens and 38 new ones do not fit the context of 40");
    check_refused_as(MLA_ERR_BUFFER_SMALL, greedy_request(CONTEXT, 0),
                     "40 tokens leaves no room");
    check_refused(greedy_request(0, 1), "the prompt has no token");
    check_refused(greedy_request(3, -1), "max_tokens is -1");
}

static void tokens_outside_the_vocabulary_are_refused(void **state)
{
    (void)state;
    const int32_t high[2] = {TINY_BOS, TINY_VOCAB};
    const int32_t negative[1] = {-1};
    check_refused((engine_request){.prompt = high, .num_prompt = 2},
                  "token 264 at 1 is outside the vocabulary of 264");
    check_refused((engine_request){.prompt = negative, .num_prompt = 1}, "token -1 at 0");
}

static void sampling_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    engine_request request = greedy_request(3, 1);
    request.sampling.temperature = -1.0F;
    check_refused(request, "temperature -1");
    request.sampling.temperature = NAN;
    check_refused(request, "temperature");
    request.sampling = (sampling_options){.top_k = -2};
    check_refused(request, "top_k -2");
    request.sampling = (sampling_options){.top_p = 1.5F};
    check_refused(request, "top_p 1.5");
    request.sampling = (sampling_options){.min_p = -0.5F};
    check_refused(request, "min_p -0.5");
}

static void a_request_without_max_tokens_runs_to_the_context_or_an_eos(void **state)
{
    (void)state;
    for (int32_t num_prompt = 1; num_prompt < CONTEXT; num_prompt++) {
        engine_request request = greedy_request(num_prompt, 0);
        demo_output out;
        demo_generate(&opened, &request, 1, &out);
        int32_t last = out.ids[0][out.num[0] - 1];
        if (out.results[0].finish == ENGINE_LENGTH) {
            assert_int_equal(num_prompt + out.num[0], CONTEXT);
        } else {
            assert_int_equal(out.results[0].finish, ENGINE_STOP);
            assert_int_equal(last, TINY_EOS);
        }
    }
}

static void max_tokens_ends_a_request_by_length(void **state)
{
    (void)state;
    engine_request request = greedy_request(3, 1);
    demo_output out;
    demo_generate(&opened, &request, 1, &out);
    assert_int_equal(out.num[0], 1);
    assert_true(out.results[0].finish == ENGINE_LENGTH || out.ids[0][0] == TINY_EOS);
    assert_true(out.results[0].prefill_ns > 0 && out.results[0].decode_ns >= 0);
}

static bool stop_at_3(engine_request *request, const engine_event *event)
{
    (void)request;
    return event->index < 2;
}

static void a_receiver_ends_its_request_and_no_other(void **state)
{
    (void)state;
    engine_request requests[2] = {greedy_request(3, 20), greedy_request(3, 20)};
    engine_result results[2];
    mla_error err = {0};
    demo_output out;
    demo_generate(&opened, requests, 1, &out);
    assert_true(out.num[0] > 3); /* or this shows nothing */
    requests[0].on_token = stop_at_3;
    must(engine_run(opened.engine, requests, 2, results, &err), &err);
    assert_int_equal(results[0].finish, ENGINE_CANCELLED);
    assert_int_equal(results[0].num_tokens, 3);
    assert_int_equal(results[1].num_tokens, out.num[0]);
    assert_int_equal(results[1].finish, out.results[0].finish);
}

static void no_requests_are_no_work(void **state)
{
    (void)state;
    assert_int_equal(engine_run(opened.engine, NULL, 0, NULL, NULL), MLA_OK);
}

static void a_score_needs_tokens_that_fit(void **state)
{
    (void)state;
    double nll = -1.0;
    mla_error err = {0};
    const int32_t bad[2] = {0, TINY_VOCAB};
    assert_int_equal(engine_score(opened.engine, prompt, 0, &nll, &err), MLA_ERR_ARGUMENT);
    assert_int_equal(engine_score(opened.engine, prompt, CONTEXT + 1, &nll, &err),
                     MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "41 tokens to score; 1 to 40"));
    assert_int_equal(engine_score(opened.engine, bad, 2, &nll, &err), MLA_ERR_ARGUMENT);
    assert_true(nll == -1.0);
    assert_int_equal(engine_score(opened.engine, prompt, 1, &nll, &err), MLA_OK);
    assert_true(nll == 0.0);
    assert_int_equal(engine_score(opened.engine, prompt, CONTEXT, &nll, &err), MLA_OK);
    assert_true(nll > 0.0);
}

static void limits_that_a_model_cannot_keep_are_refused(void **state)
{
    (void)state;
    /* The limit stands in for the machine's memory, which may be large and lent freely. */
    demo other = demo_load(
        &(demo_options){.dir = tiny.dir, .threads = 1, .memory_limit_bytes = 1 << 28});
    int64_t most = model_config_of(other.model)->max_positions;
    engine_options options = {.kv_format = MLA_KV_F32, .max_requests = 0};
    mla_error err = {0};
    assert_int_equal(engine_open(other.model, &options, &other.engine, &err),
                     MLA_ERR_ARGUMENT);
    options.max_requests = 1;
    options.max_context_tokens = most + 1;
    assert_int_equal(engine_open(other.model, &options, &other.engine, &err),
                     MLA_ERR_ARGUMENT);
    options.max_context_tokens = 0;
    options.max_requests = INT32_MAX;
    assert_int_not_equal(engine_open(other.model, &options, &other.engine, &err), MLA_OK);
    options.max_requests = 1;
    options.kv_format = (mla_kv_format)77;
    assert_int_not_equal(engine_open(other.model, &options, &other.engine, &err), MLA_OK);
    assert_null(other.engine);
    demo_close(&other);
}

/* 2^38 + 320 positions have 2^32 + 5 pages: no number of 32 bits. */
static void a_context_that_32_bits_do_not_count_is_refused(void **state)
{
    (void)state;
    tiny_model huge = tiny_model_write();
    tiny_model_patch(&huge, "config.json", "\"max_position_embeddings\": 512",
                     "\"max_position_embeddings\": 274877907264");
    demo other = demo_load(&(demo_options){.dir = huge.dir, .threads = 1});
    engine_options options = {.kv_format = MLA_KV_F32, .max_requests = 1};
    mla_error err = {0};
    assert_int_equal(engine_open(other.model, &options, &other.engine, &err),
                     MLA_ERR_ARGUMENT);
    assert_string_equal(err.message,
                        "a context of 274877907264 tokens; there are 2147483647 at most");
    demo_close(&other);
    tiny_model_remove(&huge);
}

static void chunks_that_break_the_rules_are_refused(void **state)
{
    (void)state;
    int32_t table[1] = {0};
    model_chunk good = {.tokens = prompt, .num_tokens = 4, .block_table = table};
    mla_error err = {0};
    assert_int_equal(model_prefill(opened.model, &good, &err), MLA_OK);
    model_chunk bad = good;
    bad.num_tokens = 0;
    assert_int_equal(model_prefill(opened.model, &bad, &err), MLA_ERR_ARGUMENT);
    bad = good;
    bad.first_position = CONTEXT - 3;
    assert_int_equal(model_prefill(opened.model, &bad, &err), MLA_ERR_ARGUMENT);
    bad.first_position = INT64_MAX;
    assert_int_equal(model_prefill(opened.model, &bad, &err), MLA_ERR_ARGUMENT);
    for (int32_t page = -1; page <= 2; page += 3) {
        table[0] = page;
        assert_int_equal(model_prefill(opened.model, &good, &err), MLA_ERR_ARGUMENT);
    }
}

static void steps_that_break_the_rules_are_refused(void **state)
{
    (void)state;
    float logits[TINY_VOCAB];
    int32_t table[1] = {0};
    int32_t token = 1;
    int64_t position = 0;
    const int32_t *tables[1] = {table};
    model_step step = {.num_sequences = 1,
                       .tokens = &token,
                       .positions = &position,
                       .block_tables = tables,
                       .logits = logits};
    mla_error err = {0};
    assert_int_equal(model_decode(opened.model, &step, &err), MLA_OK);
    position = CONTEXT;
    assert_int_equal(model_decode(opened.model, &step, &err), MLA_ERR_ARGUMENT);
    position = 0;
    token = TINY_VOCAB;
    assert_int_equal(model_decode(opened.model, &step, &err), MLA_ERR_ARGUMENT);
    token = 1;
    table[0] = 2;
    assert_int_equal(model_decode(opened.model, &step, &err), MLA_ERR_ARGUMENT);
    step.num_sequences = 3;
    assert_int_equal(model_decode(opened.model, &step, &err), MLA_ERR_ARGUMENT);
}

static void a_model_that_is_not_prepared_does_not_run(void **state)
{
    (void)state;
    demo other = demo_load(&(demo_options){.dir = tiny.dir, .threads = 1});
    model_chunk chunk = {.tokens = prompt, .num_tokens = 1};
    model_step step = {.num_sequences = 1, .tokens = prompt};
    mla_error err = {0};
    assert_int_equal(model_prefill(other.model, &chunk, &err), MLA_ERR_STATE);
    assert_int_equal(model_decode(other.model, &step, &err), MLA_ERR_STATE);
    demo_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_do_not_fit_are_refused_with_both_numbers),
        cmocka_unit_test(tokens_outside_the_vocabulary_are_refused),
        cmocka_unit_test(sampling_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_request_without_max_tokens_runs_to_the_context_or_an_eos),
        cmocka_unit_test(max_tokens_ends_a_request_by_length),
        cmocka_unit_test(a_receiver_ends_its_request_and_no_other),
        cmocka_unit_test(no_requests_are_no_work),
        cmocka_unit_test(a_score_needs_tokens_that_fit),
        cmocka_unit_test(limits_that_a_model_cannot_keep_are_refused),
        cmocka_unit_test(a_context_that_32_bits_do_not_count_is_refused),
        cmocka_unit_test(chunks_that_break_the_rules_are_refused),
        cmocka_unit_test(steps_that_break_the_rules_are_refused),
        cmocka_unit_test(a_model_that_is_not_prepared_does_not_run),
    };
    return cmocka_run_group_tests_name("engine", tests, start, end);
}
