/* An engine under a drawn load: whatever the pages, the cache, the guesses, the neighbours and
 * those who give up, each request gets the tokens that it gets alone, every page comes back
 * and nothing is allocated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/demo.h"
#include "support/random.h"

enum { NUM = 28, MAX_PROMPT = 420, MAX_NEW = 40, NUM_BASES = 3, NUM_KINDS = 4 };

typedef struct asked {
    engine_request request;
    int32_t prompt[MAX_PROMPT];
    int32_t expected[MAX_NEW], num_expected;
    engine_finish expected_finish;
    int32_t got[MAX_NEW], num_got;
    engine_result result;
    bool has_ended;
    int32_t give_up_at;           /* tokens; -1: never */
    int64_t submit_at, cancel_at; /* steps; cancel_at -1: never */
} asked;

static asked all[NUM];
static rng random_of_test;
static int32_t bases[NUM_BASES][MAX_PROMPT];
static engine_text stop_of_all = {" the", 4};
static const engine_bias bias_of_all = {300, 2.5F};

static bool collect(engine_request *request, const engine_event *event)
{
    asked *self = request->user;
    assert_false(self->has_ended);
    assert_int_equal(event->index, self->num_got);
    assert_true(self->num_got < MAX_NEW);
    self->got[self->num_got++] = event->token;
    return self->num_got != self->give_up_at;
}

static void end(engine_request *request, const engine_result *result)
{
    asked *self = request->user;
    assert_false(self->has_ended); /* never twice */
    self->has_ended = true;
    self->result = *result;
}

/* A prompt of a shared base up to a drawn place, and its own tokens from there. */
static void draw_prompt(asked *out, int32_t vocab)
{
    const int32_t *base = bases[rng_between(&random_of_test, 0, NUM_BASES - 1)];
    int32_t num = (int32_t)rng_between(&random_of_test, 1, MAX_PROMPT);
    int32_t shared = (int32_t)rng_between(&random_of_test, 0, num);
    for (int32_t i = 0; i < num; i++) {
        out->prompt[i] =
            i < shared ? base[i] : (int32_t)rng_between(&random_of_test, 3, vocab - 1);
    }
    if (rng_between(&random_of_test, 0, 2) == 0) { /* pages alike after another beginning */
        out->prompt[0] = 3 + (out->prompt[0] + 1) % (vocab - 3);
    }
    out->request.prompt = out->prompt;
    out->request.num_prompt = num;
}

static void draw_request(asked *out, int32_t vocab)
{
    *out = (asked){.give_up_at = -1, .cancel_at = -1};
    engine_request *request = &out->request;
    draw_prompt(out, vocab);
    request->max_tokens = rng_between(&random_of_test, 1, MAX_NEW);
    request->priority = (int32_t)rng_between(&random_of_test, -2, 2);
    request->on_token = collect;
    request->on_end = end;
    request->user = out;
    switch (rng_between(&random_of_test, 0, NUM_KINDS)) {
    case 0:
        request->sampling = (sampling_options){
            .temperature = 0.9F, .top_p = 0.95F, .seed = rng_u64(&random_of_test)};
        break;
    case 1:
        request->penalties = (engine_penalties){1.2F, 0.3F, 0.2F};
        break;
    case 2:
        request->stops = &stop_of_all;
        request->num_stops = 1;
        break;
    case 3:
        request->biases = &bias_of_all;
        request->num_biases = 1;
        request->min_tokens = request->max_tokens;
        break;
    default:
        request->ignores_eos = true;
    }
}

static void forget(asked *self)
{
    self->num_got = 0;
    self->has_ended = false;
    atomic_store(&self->request.is_cancelled, false);
}

static void run_alone(const demo *plain, asked *self)
{
    mla_error err = {0};
    bool is_idle = false;
    forget(self);
    must(engine_check(plain->engine, &self->request, NULL, &err), &err);
    engine_submit(plain->engine, &self->request);
    while (!is_idle) {
        must(engine_step(plain->engine, &is_idle, &err), &err);
    }
    assert_true(self->has_ended);
    memcpy(self->expected, self->got, sizeof self->got);
    self->num_expected = self->num_got;
    self->expected_finish = self->result.finish;
}

/* What the load does to the pages may not break any of these. */
static void check_pages(engine *self)
{
    engine_stats stats;
    engine_stats_take(self, &stats);
    int32_t unused = stats.pages_cached + stats.pages_free;
    assert_int_equal(stats.pages_used + unused, engine_limits_of(self)->num_pages);
    assert_true(stats.pages_reserved <= unused);
}

static void submit_due(engine *self, int64_t step)
{
    mla_error err = {0};
    for (int32_t i = 0; i < NUM; i++) {
        if (all[i].submit_at == step) {
            must(engine_check(self, &all[i].request, NULL, &err), &err);
            engine_submit(self, &all[i].request);
        }
        if (all[i].cancel_at == step && !all[i].has_ended) {
            engine_cancel(self, &all[i].request);
        }
    }
}

static void run_load(engine *self)
{
    mla_error err = {0};
    bool is_idle = false;
    int64_t last = 0;
    for (int32_t i = 0; i < NUM; i++) {
        forget(&all[i]);
        all[i].submit_at = rng_between(&random_of_test, 0, 60);
        last = all[i].submit_at > last ? all[i].submit_at : last;
        all[i].give_up_at = -1;
        all[i].cancel_at = -1;
        if (rng_between(&random_of_test, 0, 4) == 0) {
            all[i].cancel_at = all[i].submit_at + rng_between(&random_of_test, 0, 40);
        } else if (rng_between(&random_of_test, 0, 4) == 0) {
            all[i].give_up_at = (int32_t)rng_between(&random_of_test, 1, MAX_NEW);
        }
    }
    for (int64_t step = 0; step <= last || !is_idle; step++) {
        submit_due(self, step);
        must(engine_step(self, &is_idle, &err), &err);
        check_pages(self);
    }
}

static void check_answers(void)
{
    for (int32_t i = 0; i < NUM; i++) {
        const asked *self = &all[i];
        assert_true(self->has_ended);
        assert_int_equal(self->result.num_tokens, self->num_got);
        assert_true(self->num_got <= self->num_expected);
        if (memcmp(self->got, self->expected,
                   (size_t)self->num_got * sizeof self->got[0]) != 0) {
            fail_msg("request %d of %d tokens has others than alone", i,
                     self->request.num_prompt);
        }
        if (self->result.finish != ENGINE_CANCELLED) {
            assert_int_equal(self->result.finish, self->expected_finish);
            assert_int_equal(self->num_got, self->num_expected);
        }
    }
}

static void check_idle(const demo *opened, uint64_t allocs_before)
{
    engine_stats stats;
    engine_stats_take(opened->engine, &stats);
    assert_int_equal(stats.pages_used, 0);
    assert_int_equal(stats.pages_reserved, 0);
    assert_int_equal(stats.num_running, 0);
    assert_int_equal(stats.num_waiting, 0);
    assert_int_equal(demo_num_allocs(opened), allocs_before);
}

/* --- drafters that nobody should trust */

static mla_status propose_nonsense(drafter *self, draft *drafts, int32_t num,
                                   mla_error *err)
{
    (void)self;
    (void)err;
    for (int32_t i = 0; i < num; i++) {
        draft *out = &drafts[i];
        out->num_guesses = (int32_t)rng_between(&random_of_test, 0, ENGINE_MAX_DRAFT);
        for (int32_t j = 0; j < ENGINE_MAX_DRAFT; j++) {
            out->guesses[j] = (int32_t)rng_between(&random_of_test, -2, 5000);
        }
    }
    return MLA_OK;
}

/* Knows the answers, and errs now and then. */
static mla_status propose_the_answer(drafter *self, draft *drafts, int32_t num,
                                     mla_error *err)
{
    (void)self;
    (void)err;
    for (int32_t i = 0; i < num; i++) {
        draft *out = &drafts[i];
        const asked *of = all;
        while (&of->request.sampling != out->sampling) {
            of++;
        }
        for (int32_t at = of->num_got;
             out->num_guesses < out->max_guesses && at < of->num_expected; at++) {
            bool errs = rng_between(&random_of_test, 0, 9) == 0;
            out->guesses[out->num_guesses++] = of->expected[at] + errs;
        }
    }
    return MLA_OK;
}

typedef struct variant {
    const char *name;
    int32_t max_requests, draft_tokens, num_pages;
    bool has_prefix_cache;
    drafter drafter;
} variant;

static void check_variant(variant how, mla_kv_format kv, uint64_t page_bytes,
                          const tokenizer *words)
{
    print_message("%s, format %d\n", how.name, (int)kv);
    demo opened =
        demo_open(&(demo_options){.kv = kv,
                                  .max_requests = how.max_requests,
                                  .max_context = MAX_PROMPT + MAX_NEW,
                                  .kv_bytes = page_bytes * (uint64_t)how.num_pages,
                                  .draft_tokens = how.draft_tokens,
                                  .drafter = how.drafter.propose ? &how.drafter : NULL,
                                  .has_prefix_cache = how.has_prefix_cache,
                                  .words = words});
    mla_error err = {0};
    engine_stats stats;
    must(mla_context_freeze(opened.context, &err), &err);
    uint64_t allocs = demo_num_allocs(&opened);
    for (int32_t round = 0; round < 2; round++) {
        run_load(opened.engine);
        check_answers();
        check_idle(&opened, allocs);
    }
    engine_stats_take(opened.engine, &stats);
    assert_int_equal(stats.cached_tokens > 0, how.has_prefix_cache);
    assert_int_equal(stats.num_drafts > 0, how.draft_tokens > 0);
    if (how.drafter.propose == propose_the_answer) {
        assert_true(stats.accepted_tokens * 2 > stats.draft_tokens);
    }
    demo_close(&opened);
}

static void check_format(mla_kv_format kv)
{
    const variant variants[] = {
        {"many at once", 8, 0, 64, false, {0}},
        {"few pages", 8, 0, 9, false, {0}},
        {"prefix cache", 4, 0, 40, true, {0}},
        {"prefix cache of few pages", 8, 0, 9, true, {0}},
        {"n-gram", 4, 7, 40, true, {0}},
        {"nonsense", 5, 3, 40, true, {.propose = propose_nonsense}},
        {"the answer", 8, 5, 9, true, {.propose = propose_the_answer}},
    };
    tokenizer *words = NULL;
    mla_error err = {0};
    random_of_test = rng_start("serving");
    demo plain = demo_open(&(demo_options){.kv = kv, .max_context = MAX_PROMPT + MAX_NEW});
    must(tokenizer_open(plain.context, TEST_MODELS "/demo", &words, &err), &err);
    demo alone = demo_open(
        &(demo_options){.kv = kv, .max_context = MAX_PROMPT + MAX_NEW, .words = words});
    const engine_limits *limits = engine_limits_of(alone.engine);
    for (int32_t i = 0; i < NUM_BASES * MAX_PROMPT; i++) {
        bases[i / MAX_PROMPT][i % MAX_PROMPT] =
            (int32_t)rng_between(&random_of_test, 3, limits->vocab_size - 1);
    }
    for (int32_t i = 0; i < NUM; i++) {
        draw_request(&all[i], limits->vocab_size);
        run_alone(&alone, &all[i]);
    }
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        check_variant(variants[i], kv, limits->page_bytes, words);
    }
    demo_close(&alone);
    tokenizer_close(&words);
    demo_close(&plain);
}

static void a_load_changes_no_answer_bf16(void **state)
{
    (void)state;
    check_format(MLA_KV_BF16);
}

static void a_load_changes_no_answer_fp8_g128(void **state)
{
    (void)state;
    check_format(MLA_KV_FP8_G128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_changes_no_answer_bf16),
        cmocka_unit_test(a_load_changes_no_answer_fp8_g128),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
