/* Are sampled tokens distributed as the logits say? Chi-square over many seeds, alone and
 * with guesses that are verified beside them; and sampled answers with guesses are, token for
 * token, those without. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/demo.h"
#include "support/random.h"
#include "support/tiny_model.h"

enum {
    NUM_DRAWS = 6000,
    BATCH = 8,
    NUM_BIASED = 6,
    STEP = 2 /* of the answer: after guesses */
};

static const int32_t prompt[] = {TINY_BOS, 5, 6, 5, 6, 5, 6, 5, 6};
enum { NUM_PROMPT = sizeof prompt / sizeof prompt[0] };
static int32_t counts[TINY_VOCAB];
static int32_t drawn[NUM_DRAWS];
static engine_bias biases[TINY_VOCAB]; /* all but a few tokens are out of the question */

static bool count(engine_request *request, const engine_event *event)
{
    int32_t *slot = request->user;
    if (event->index == STEP) {
        counts[event->token]++;
        *slot = event->token;
    }
    return true;
}

static void limit_tokens(void)
{
    for (int32_t id = 0; id < TINY_VOCAB; id++) {
        bool is_kept = id >= 4 && id < 4 + NUM_BIASED;
        biases[id] = (engine_bias){id, is_kept ? 0.3F * (float)(id - 4) : -INFINITY};
    }
}

static engine_request ask(uint64_t seed, int32_t *slot)
{
    return (engine_request){
        .prompt = prompt,
        .num_prompt = NUM_PROMPT,
        .max_tokens = STEP + 2,
        .sampling = {.temperature = 1.0F, .seed = seed},
        .biases = biases,
        .num_biases = TINY_VOCAB,
        .on_token = count,
        .user = slot,
    };
}

/* Guesses that are right about as often as chance has it, so that answers end a draft at
 * every place. */
static mla_status propose(drafter *self, draft *drafts, int32_t num, mla_error *err)
{
    (void)self;
    (void)err;
    for (int32_t i = 0; i < num; i++) {
        drafts[i].num_guesses = drafts[i].max_guesses;
        for (int32_t j = 0; j < drafts[i].num_guesses; j++) {
            drafts[i].guesses[j] =
                4 + (int32_t)((drafts[i].num_tokens + INT64_C(5) * j) % NUM_BIASED);
        }
    }
    return MLA_OK;
}

static void draw_all(const tiny_model *tiny, drafter *guesser, uint64_t base)
{
    mla_error err = {0};
    demo opened = demo_open(&(demo_options){.dir = tiny->dir,
                                            .threads = 1,
                                            .max_requests = BATCH,
                                            .max_context = 64,
                                            .draft_tokens = guesser ? 3 : 0,
                                            .drafter = guesser});
    for (int32_t id = 0; id < TINY_VOCAB; id++) {
        counts[id] = 0;
    }
    for (int32_t i = 0; i < NUM_DRAWS; i += BATCH) {
        engine_request requests[BATCH];
        engine_result results[BATCH];
        for (int32_t j = 0; j < BATCH; j++) {
            requests[j] = ask(base + (uint64_t)(i + j), &drawn[i + j]);
        }
        must(engine_run(opened.engine, requests, BATCH, results, &err), &err);
    }
    if (guesser) {
        engine_stats stats;
        engine_stats_take(opened.engine, &stats);
        assert_true(stats.accepted_tokens > NUM_DRAWS / 20);
        assert_true(stats.accepted_tokens < stats.draft_tokens / 2);
    }
    demo_close(&opened);
}

/* The probabilities of the token at STEP, summed over what may come before it, out of the
 * model's own logprobs. */
static void expect(const tiny_model *tiny, double out[NUM_BIASED])
{
    mla_error err = {0};
    demo opened =
        demo_open(&(demo_options){.dir = tiny->dir, .threads = 1, .max_context = 64});
    int32_t text[NUM_PROMPT + STEP + 1];
    for (int32_t i = 0; i < NUM_PROMPT; i++) {
        text[i] = prompt[i];
    }
    double at[STEP + 1][NUM_BIASED]; /* of the prefix being walked */
    int32_t path[STEP + 1] = {0};
    double weight[STEP + 2] = {1.0};
    for (int32_t depth = 0; depth >= 0;) {
        if (path[depth] == 0) { /* the distribution after this prefix */
            double before = 0.0;
            double sum = 0.0;
            must(engine_score(opened.engine, text, NUM_PROMPT + depth, &before, &err),
                 &err);
            for (int32_t k = 0; k < NUM_BIASED; k++) {
                double after = 0.0;
                text[NUM_PROMPT + depth] = 4 + k;
                must(
                    engine_score(opened.engine, text, NUM_PROMPT + depth + 1, &after, &err),
                    &err);
                at[depth][k] = exp(before - after + 0.3 * k);
                sum += at[depth][k];
            }
            for (int32_t k = 0; k < NUM_BIASED; k++) {
                at[depth][k] /= sum;
                out[k] += depth == STEP ? weight[depth] * at[depth][k] : 0.0;
            }
        }
        if (depth == STEP || path[depth] == NUM_BIASED) {
            path[depth--] = 0;
            if (depth >= 0) {
                path[depth]++;
            }
            continue;
        }
        text[NUM_PROMPT + depth] = 4 + path[depth];
        weight[depth + 1] = weight[depth] * at[depth][path[depth]];
        depth++;
    }
    demo_close(&opened);
}

/* 5 degrees of freedom: above 35.9 once in a million seeds. */
static void check_chi_square(const double expected[NUM_BIASED])
{
    double sum = 0.0;
    for (int32_t k = 0; k < NUM_BIASED; k++) {
        double wanted = expected[k] * NUM_DRAWS;
        double apart = counts[4 + k] - wanted;
        assert_true(wanted > 20.0);
        sum += apart * apart / wanted;
    }
    print_message("chi-square %.2f of 5 degrees\n", sum);
    assert_true(sum < 35.9);
}

static void draws_have_the_distribution_of_the_logits_with_and_without_guesses(void **state)
{
    (void)state;
    static int32_t without[NUM_DRAWS];
    double expected[NUM_BIASED] = {0};
    drafter guesser = {.propose = propose};
    rng random = rng_start("draws");
    uint64_t base = rng_u64(&random) >> 1;
    tiny_model tiny = tiny_model_write();
    limit_tokens();
    expect(&tiny, expected);
    draw_all(&tiny, NULL, base);
    check_chi_square(expected);
    for (int32_t i = 0; i < NUM_DRAWS; i++) {
        without[i] = drawn[i];
    }
    draw_all(&tiny, &guesser, base);
    check_chi_square(expected);
    assert_memory_equal(without, drawn, sizeof drawn);
    tiny_model_remove(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            draws_have_the_distribution_of_the_logits_with_and_without_guesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
