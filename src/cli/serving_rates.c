/* serving_rates.c - how fast tokens come: one request and eight by the engine's own counters,
 * and what clients see of it. */
#include <math.h>
#include <stdlib.h>

#include "base/status.h"
#include "cli/serving_run.h"

enum { MOST_TOKENS = 128, LEAST_TOKENS = 32, ROUNDS = 5, NS_PER_MS = 1000000 };
#define MS_PER_SECOND   1e3
#define LEDGER_PAUSE_NS 500000000
#define LEAST_PAUSE_MS  10.0
#define LOOKS_AT_ONE                                                                       \
    4 /* as few as there may be: each costs the server time, which is taken off */
#define P99 0.99

/* ------------------------------------------------------------- what clients see */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The smallest value that a share of all is not above. values: ascending [num], num >= 1 */
static double quantile_ms(const int64_t *values, int32_t num, double share)
{
    int32_t at = (int32_t)ceil(share * num) - 1;
    return (double)values[at < 0 ? 0 : at] / NS_PER_MS;
}

static serving_spread spread_of(int64_t *values, int32_t num)
{
    if (num == 0) {
        return (serving_spread){0};
    }
    qsort(values, (size_t)num, sizeof *values, compare);
    return (serving_spread){.num = num,
                            .median_ms = quantile_ms(values, num, 0.5),
                            .p99_ms = quantile_ms(values, num, P99),
                            .most_ms = quantile_ms(values, num, 1)};
}

serving_spread serving_spread_first(const serving_group *group)
{
    int64_t values[SERVING_MAX_MIXED];
    int32_t num = 0;
    for (int32_t i = 0; i < group->num; i++) {
        const serving_answer *answer = &group->answers[i];
        if (answer->ask.is_stream && serving_answer_num_times(answer) > 0) {
            values[num++] = serving_answer_time(answer, 0) - answer->call.begin_ns;
        }
    }
    return spread_of(values, num);
}

static mla_status gather(const serving_group *group, byte_buffer *out)
{
    for (int32_t i = 0; i < group->num; i++) {
        const serving_answer *answer = &group->answers[i];
        int32_t num = answer->ask.is_stream ? serving_answer_num_times(answer) : 0;
        for (int32_t at = 1; at < num; at++) {
            int64_t gap_ns =
                serving_answer_time(answer, at) - serving_answer_time(answer, at - 1);
            MLAI_TRY(client_append(out, &gap_ns, sizeof gap_ns, NULL));
        }
    }
    return MLA_OK;
}

serving_spread serving_spread_between(const serving_run *run, const serving_group *group)
{
    byte_buffer gaps = {.context = run->context};
    serving_spread spread = {0};
    if (gather(group, &gaps) == MLA_OK && gaps.num > 0) {
        spread =
            spread_of((int64_t *)(void *)gaps.data, (int32_t)(gaps.num / sizeof(int64_t)));
    }
    byte_buffer_free(&gaps);
    return spread;
}

/* ---------------------------------------------------------- what the engine counts */

/* look_seconds: of the server's processor time, for each look at /metrics. */
static serving_rate rate_of(const serving_watch *watch, double look_seconds)
{
    const watch_figures *from = &watch->begin;
    const watch_figures *to = &watch->end;
    double seconds = to->step_seconds - from->step_seconds;
    double tokens = to->new_tokens - from->new_tokens;
    double steps = to->steps - from->steps;
    double cpu_seconds = to->loop_cpu_seconds - from->loop_cpu_seconds +
                         to->worker_cpu_seconds - from->worker_cpu_seconds -
                         watch->num_looks * look_seconds;
    if (!watch->has_end || !(seconds > 0 && tokens > 0 && steps > 0)) {
        return (serving_rate){0};
    }
    return (serving_rate){.is_known = true,
                          .tokens_per_second = tokens / seconds,
                          .step_ms = seconds / steps * MS_PER_SECOND,
                          .cpu_share = cpu_seconds / tokens / (seconds / steps),
                          .cpu_ms_a_token = cpu_seconds / tokens * MS_PER_SECOND};
}

/* As many new tokens as eight such requests have pages for; 0: too few to measure. */
static int64_t tokens_of(const serving_report *report)
{
    const serving_budget *budget = &report->budget;
    int64_t pages = budget->num_pages / SERVING_RATE_REQUESTS;
    int64_t context = report->wanted->max_context_tokens
                          ? report->wanted->max_context_tokens
                          : report->config.max_positions;
    int64_t room = pages * budget->page_tokens;
    room = (room < context ? room : context) - SERVING_CHAT_PROMPT_TOKENS;
    room = room < MOST_TOKENS ? room : MOST_TOKENS;
    return room >= LEAST_TOKENS ? room : 0;
}

static mla_status measure(serving_run *run, int32_t num, double look_seconds,
                          serving_rate *out, mla_error *err)
{
    serving_ask asks[SERVING_RATE_REQUESTS];
    int64_t tokens = tokens_of(run->report);
    serving_group group = {.answers = run->rate, .num = num};
    for (int32_t i = 0; i < num; i++) {
        asks[i] = (serving_ask){.is_chat = true,
                                .is_stream = true,
                                .number = i,
                                .new_tokens = tokens,
                                .salt = num == 1 ? "one" : "eight"};
    }
    watch_forget(&run->watch);
    MLAI_TRY(serving_group_run(run, asks, &group, err));
    *out = rate_of(&run->watch, look_seconds);
    out->from_tokens = group.answers[0].prompt_tokens;
    for (int32_t i = 0; i < num; i++) {
        const serving_answer *answer = &group.answers[i];
        int64_t context = answer->prompt_tokens + answer->new_tokens;
        out->to_tokens = context > out->to_tokens ? context : out->to_tokens;
    }
    return MLA_OK;
}

static int compare_rates(const void *a, const void *b)
{
    const serving_rate *x = a;
    const serving_rate *y = b;
    return (x->tokens_per_second > y->tokens_per_second) -
           (x->tokens_per_second < y->tokens_per_second);
}

/* rates: [ROUNDS]; of those that are known. */
static serving_rate median_of(serving_rate *rates)
{
    int32_t num_unknown = 0; /* these have a rate of 0, and come first */
    qsort(rates, ROUNDS, sizeof *rates, compare_rates);
    while (num_unknown < ROUNDS && !rates[num_unknown].is_known) {
        num_unknown++;
    }
    return num_unknown < ROUNDS ? rates[num_unknown + (ROUNDS - num_unknown) / 2]
                                : rates[0];
}

/* One and eight take turns, so that what else the machine does meets both. */
mla_status serving_run_rates(serving_run *run, mla_error *err)
{
    serving_rate ones[ROUNDS] = {0};
    serving_rate eights[ROUNDS] = {0};
    double look_seconds = 0;
    int64_t tokens = tokens_of(run->report);
    MLAI_TRY(watch_cost_of_look(&run->watch, &look_seconds, err));
    double pause_ms = (double)tokens * run->report->between_alone.median_ms / LOOKS_AT_ONE;
    pause_ms = pause_ms > LEAST_PAUSE_MS ? pause_ms : LEAST_PAUSE_MS;
    run->watch.ledger_pause_ns = LEDGER_PAUSE_NS;
    run->watch.metrics_pause_ns = (int64_t)(pause_ms * NS_PER_MS);
    for (int i = 0; i < ROUNDS && tokens > 0; i++) {
        MLAI_TRY(measure(run, 1, look_seconds, &ones[i], err));
        MLAI_TRY(measure(run, SERVING_RATE_REQUESTS, look_seconds, &eights[i], err));
    }
    run->report->one = median_of(ones);
    run->report->eight = median_of(eights);
    return MLA_OK;
}
