/* What a request may wish for, each wish against what it means: bias, ends, penalties,
 * logprobs, stop strings, priority, shared pages. On a checkpoint of a few kilobytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/state.h"
#include "support/demo.h"
#include "support/tiny_model.h"

enum { CONTEXT = 500, NUM_PAGES = 12, MAX_SEEN = 64 };

static tiny_model tiny;
static demo opened;
static tokenizer *words;
static int32_t prompt[CONTEXT];

static int start(void **state)
{
    mla_error err = {0};
    (void)state;
    tiny = tiny_model_write();
    demo plain = demo_load(&(demo_options){.dir = tiny.dir, .threads = 1});
    must(tokenizer_open(plain.context, tiny.dir, &words, &err), &err);
    opened = plain;
    engine_options options = {.kv_format = MLA_KV_F32,
                              .max_requests = 3,
                              .max_context_tokens = CONTEXT,
                              .kv_bytes = NUM_PAGES * UINT64_C(64) * 2 * 80 * 4,
                              .default_max_tokens = 20,
                              .has_prefix_cache = true,
                              .scores_texts = true,
                              .words = words};
    must(engine_open(opened.model, &options, &opened.engine, &err), &err);
    assert_int_equal(engine_limits_of(opened.engine)->num_pages, NUM_PAGES);
    for (int32_t i = 0; i < CONTEXT; i++) {
        prompt[i] = (i * i * 7 + 11 * i) % 256;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    engine_close(&opened.engine);
    tokenizer_close(&words);
    demo_close(&opened);
    tiny_model_remove(&tiny);
    return 0;
}

typedef struct seen {
    engine_result result;
    int32_t tokens[MAX_SEEN];
    engine_event events[MAX_SEEN];
    engine_logprob top[MAX_SEEN][ENGINE_MAX_LOGPROBS];
    int32_t num;
} seen;

static bool note(engine_request *request, const engine_event *event)
{
    seen *out = request->user;
    assert_true(out->num < MAX_SEEN);
    out->tokens[out->num] = event->token;
    out->events[out->num] = *event;
    for (int32_t i = 0; i < event->num_top; i++) {
        out->top[out->num][i] = event->top[i];
    }
    out->num++;
    return true;
}

static seen run(engine_request request)
{
    seen out = {.num = 0};
    mla_error err = {0};
    request.on_token = note;
    request.user = &out;
    must(engine_run(opened.engine, &request, 1, &out.result, &err), &err);
    assert_int_equal(out.num, out.result.num_tokens);
    return out;
}

static engine_request ask(int32_t num_prompt, int64_t max_tokens)
{
    return (engine_request){.prompt = prompt,
                            .num_prompt = num_prompt,
                            .max_tokens = max_tokens,
                            .ignores_eos = true};
}

static void a_bias_decides(void **state)
{
    (void)state;
    const engine_bias biases[] = {{77, 1000.0F}, {78, 1000.0F}, {78, -INFINITY}};
    engine_request request = ask(5, 6);
    request.biases = biases;
    request.num_biases = 3;
    seen out = run(request);
    for (int32_t i = 0; i < out.num; i++) {
        assert_int_equal(out.tokens[i], 77);
    }
}

static void no_end_comes_before_min_tokens_and_the_first_one_after(void **state)
{
    (void)state;
    const engine_bias bias = {TINY_EOS, 1000.0F};
    const int32_t stop_id = 9;
    engine_request request = ask(5, 20);
    request.ignores_eos = false;
    request.biases = &bias;
    request.num_biases = 1;
    request.min_tokens = 7;
    seen out = run(request);
    assert_int_equal(out.result.finish, ENGINE_STOP);
    assert_int_equal(out.result.stop_id, TINY_EOS);
    assert_int_equal(out.num, 8);
    assert_true(out.events[7].is_end && !out.events[6].is_end);
    request.min_tokens = 0;
    assert_int_equal(run(request).num, 1);
    request.ignores_eos = true;
    assert_int_equal(run(request).num, 20);
    request.stop_ids = &stop_id;
    request.num_stop_ids = 1;
    request.biases = &(engine_bias){9, 1000.0F};
    out = run(request);
    assert_int_equal(out.num, 1);
    assert_int_equal(out.result.stop_id, 9);
}

static void a_stop_string_ends_it_at_once(void **state)
{
    (void)state;
    engine_request request = ask(5, 20);
    request.biases = &(engine_bias){'A', 1000.0F};
    request.num_biases = 1;
    seen plain = run(request);
    size_t bytes = 0;
    const char *piece = tokenizer_bytes_of(words, plain.tokens[0], &bytes);
    char text[8] = {piece[0], piece[0], piece[0]};
    assert_int_equal(bytes, 1);
    request.stops = &(engine_text){text, 3};
    request.num_stops = 1;
    seen out = run(request);
    assert_int_equal(out.result.finish, ENGINE_STOP);
    assert_int_equal(out.result.stop_string, 0);
    assert_int_equal(out.num, 3);
    assert_int_equal(out.result.stop_id, -1);
}

static void the_default_length_is_the_engines_as_far_as_it_fits(void **state)
{
    (void)state;
    assert_int_equal(run(ask(5, 0)).num, 20);
    assert_int_equal(run(ask(CONTEXT - 3, 0)).num, 3);
}

/* Shapes hand-made logits; the sums were done by hand. */
static void penalties_are_those_of_the_formula(void **state)
{
    (void)state;
    static float logits[TINY_VOCAB];
    static uint32_t counts[TINY_VOCAB];
    static int32_t tokens[8];
    const int32_t asked[2] = {3, 4};
    engine_request request = {
        .prompt = asked, .num_prompt = 2, .penalties = {2.0F, 0.5F, 0.25F}};
    engine_slot slot = {.request = &request, .tokens = tokens, .counts = counts};
    memcpy(tokens, asked, sizeof asked);
    for (int32_t id = 0; id < TINY_VOCAB; id++) {
        logits[id] = id % 2 ? 8.0F : -8.0F;
    }
    logits_begin(&slot);
    for (int32_t i = 0; i < 3; i++) {
        tokens[2 + i] = i < 2 ? 6 : 3;
        logits_count(&slot, tokens[2 + i]);
        slot.num_new++;
    }
    logits_shape(opened.engine, &slot, logits);
    assert_true(logits[3] == 8.0F / 2 - 0.5F - 0.25F); /* prompt, and once in the answer */
    assert_true(logits[4] == -8.0F * 2);               /* prompt only */
    assert_true(logits[6] == -8.0F * 2 - 0.5F - 0.5F); /* twice in the answer */
    assert_true(logits[5] == 8.0F && logits[8] == -8.0F); /* neither */
    logits_end(&slot);
    for (int32_t id = 0; id < TINY_VOCAB; id++) {
        assert_int_equal(counts[id], 0);
    }
}

static void logprobs_are_those_that_a_score_gives(void **state)
{
    (void)state;
    mla_error err = {0};
    engine_request request = ask(9, 5);
    request.wants_logprobs = true;
    request.num_top_logprobs = 20;
    request.biases = &(engine_bias){200, 3.0F}; /* no logprob may see it */
    request.num_biases = 1;
    seen out = run(request);
    int32_t text[CONTEXT];
    memcpy(text, prompt, 9 * sizeof *text);
    for (int32_t i = 0; i < out.num; i++) {
        double before = 0.0;
        double after = 0.0;
        const engine_event *event = &out.events[i];
        text[9 + i] = event->token;
        must(engine_score(opened.engine, text, 9 + i, &before, &err), &err);
        must(engine_score(opened.engine, text, 10 + i, &after, &err), &err);
        assert_true(fabs((before - after) - (double)event->logprob) < 1e-3);
        assert_int_equal(event->num_top, 20);
        for (int32_t j = 1; j < 20; j++) {
            assert_true(out.top[i][j].logprob <= out.top[i][j - 1].logprob);
            assert_int_not_equal(out.top[i][j].id, out.top[i][0].id);
        }
        for (int32_t j = 0; j < 20; j++) {
            if (out.top[i][j].id == event->token) {
                assert_true(out.top[i][j].logprob == event->logprob);
            }
        }
    }
}

static void a_prompt_that_was_there_is_not_computed_again(void **state)
{
    (void)state;
    engine_request request = ask(5 * 64, 3);
    request.cache_salt = 1234;
    seen first = run(request);
    seen second = run(request);
    assert_int_equal(first.result.num_cached, 0);
    assert_int_equal(second.result.num_cached, 4 * 64); /* the last token always is */
    assert_memory_equal(first.tokens, second.tokens, sizeof first.tokens);
    request.num_prompt = 5 * 64 + 1;
    assert_int_equal(run(request).result.num_cached, 5 * 64);
    request.cache_salt = 1235;
    assert_int_equal(run(request).result.num_cached, 0);
}

/* n choices of one prompt, submitted together, prefill it once. */
static void equal_prompts_share_the_work_while_it_is_done(void **state)
{
    (void)state;
    engine_request requests[3];
    engine_result results[3];
    mla_error err = {0};
    int64_t num_cached = 0;
    for (int32_t i = 0; i < 3; i++) {
        requests[i] = ask(3 * 64 + 5, 4);
        requests[i].cache_salt = 99;
    }
    must(engine_run(opened.engine, requests, 3, results, &err), &err);
    for (int32_t i = 0; i < 3; i++) {
        num_cached += results[i].num_cached;
    }
    assert_int_equal(num_cached, 2 * 3 * 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bias_decides),
        cmocka_unit_test(no_end_comes_before_min_tokens_and_the_first_one_after),
        cmocka_unit_test(a_stop_string_ends_it_at_once),
        cmocka_unit_test(the_default_length_is_the_engines_as_far_as_it_fits),
        cmocka_unit_test(penalties_are_those_of_the_formula),
        cmocka_unit_test(logprobs_are_those_that_a_score_gives),
        cmocka_unit_test(a_prompt_that_was_there_is_not_computed_again),
        cmocka_unit_test(equal_prompts_share_the_work_while_it_is_done),
    };
    return cmocka_run_group_tests(tests, start, end);
}
