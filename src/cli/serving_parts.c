/* serving_parts.c - coding answers alone, the mixed load, and one request more than fits. */
#include <string.h>

#include "base/status.h"
#include "cli/digits.h"
#include "cli/serving_run.h"

enum { BAD_REQUEST = 400, REFUSED_PROMPT_TOKENS = 64, MAX_ATTEMPTS = 3 };
#define NS_PER_MS 1e6

static serving_ask ask_for_code(const serving_run *run, int32_t number, const char *salt)
{
    const serving_options *wanted = run->report->wanted;
    return (serving_ask){.is_chat = true,
                         .is_stream = true,
                         .number = number,
                         .new_tokens = wanted->answer_tokens,
                         .salt = salt};
}

/* Every second one is a stream, the others are whole bodies. */
static serving_ask ask_long(const serving_run *run, int32_t number, const char *salt)
{
    const serving_options *wanted = run->report->wanted;
    return (serving_ask){.is_stream = number % 2 == 0,
                         .number = number,
                         .prompt_tokens = wanted->prompt_tokens,
                         .new_tokens = wanted->answer_tokens,
                         .vocab_size = run->report->config.vocab_size,
                         .salt = salt};
}

static void check_complete(serving_run *run, const char *name, const serving_group *group,
                           int32_t num)
{
    int32_t num_failed = 0;
    const char *first = "";
    for (int32_t i = 0; i < num; i++) {
        if (group->answers[i].failure[0]) {
            first = num_failed++ == 0 ? group->answers[i].failure : first;
        }
    }
    serving_report_check(run->report, name, num_failed == 0,
                         num_failed == 0 ? "%d of %d%s" : "%d of %d failed; first: %s",
                         num_failed == 0 ? num : num_failed, num, first);
}

mla_status serving_run_alone(serving_run *run, mla_error *err)
{
    serving_report *report = run->report;
    int32_t num = report->wanted->num_answers;
    serving_group all = {.answers = run->alone, .num = num};
    for (int32_t i = 0; i < num; i++) {
        serving_ask ask = ask_for_code(run, i, "alone");
        serving_group one = {.answers = &run->alone[i], .num = 1};
        MLAI_TRY(serving_group_run(run, &ask, &one, err));
        report->alone_s += one.seconds;
    }
    check_complete(run, "coding answers alone are complete", &all, num);
    report->first_alone = serving_spread_first(&all);
    report->between_alone = serving_spread_between(run, &all);
    return MLA_OK;
}

static void check_same(serving_run *run, const char *name, const serving_answer *some,
                       const serving_answer *others, int32_t num)
{
    int32_t num_same = 0;
    for (int32_t i = 0; i < num; i++) {
        num_same += serving_answer_is_same(&some[i], &others[i]);
    }
    serving_report_check(run->report, name, num_same == num, "%d of %d", num_same, num);
}

mla_status serving_run_mixed(serving_run *run, mla_error *err)
{
    static serving_ask asks[SERVING_MAX_MIXED];
    serving_report *report = run->report;
    int32_t num_code = report->wanted->num_answers;
    serving_group group = {.answers = run->mixed,
                           .num = num_code + report->wanted->num_prompts};
    for (int32_t i = 0; i < group.num; i++) {
        asks[i] = i < num_code ? ask_for_code(run, i, "mixed")
                               : ask_long(run, i - num_code, "mixed");
    }
    watch_forget(&run->watch);
    MLAI_TRY(serving_group_run(run, asks, &group, err));
    report->mixed_s = group.seconds;
    report->during = json_incref(run->watch.during);
    check_complete(run, "answers of the mixed load are complete", &group, group.num);
    check_same(run, "coding answers are those that were given alone", run->alone,
               run->mixed, num_code);
    report->first_mixed = serving_spread_first(&group);
    report->between_mixed = serving_spread_between(run, &group);
    group.num = num_code;
    report->between_coding = serving_spread_between(run, &group);
    return MLA_OK;
}

/* ------------------------------------------------------------- more than fits */

/* -1: there is none. */
static int64_t next_number(const char **at)
{
    uint64_t number = 0;
    *at += strcspn(*at, "0123456789");
    const char *end = digits_read(*at, INT64_MAX, &number);
    *at = end ? end : *at + strlen(*at);
    return end ? (int64_t)number : -1;
}

static bool has_number(const char *text, int64_t wanted)
{
    for (int64_t number = 0; number >= 0;) {
        number = next_number(&text);
        if (number == wanted) {
            return true;
        }
    }
    return false;
}

/* required, available and deficit, in tokens or in pages: there are an available and a deficit
 * above 0 that make up the required. */
static bool says_numbers(const char *text, int64_t required)
{
    if (!has_number(text, required)) {
        return false;
    }
    const char *at = text;
    for (int64_t number = next_number(&at); number >= 0; number = next_number(&at)) {
        if (number > 0 && number < required && has_number(text, required - number)) {
            return true;
        }
    }
    return false;
}

static int64_t pages_of(const serving_budget *budget, int64_t tokens)
{
    return (tokens - 1 + budget->page_tokens - 1) / budget->page_tokens;
}

static serving_ask ask_too_much(const serving_run *run)
{
    const serving_report *report = run->report;
    serving_ask ask = ask_long(run, 0, "beyond");
    int64_t context = report->wanted->max_context_tokens;
    context =
        context > report->config.max_positions ? context : report->config.max_positions;
    ask.is_stream = false;
    ask.prompt_tokens = REFUSED_PROMPT_TOKENS;
    ask.new_tokens = report->budget.num_pages * report->budget.page_tokens + context;
    return ask;
}

static void check_refused(serving_run *run, const serving_answer *refused,
                          const serving_group *others)
{
    const serving_ask *ask = &refused->ask;
    int64_t tokens = ask->prompt_tokens + ask->new_tokens;
    int64_t last_ns = 0;
    for (int32_t i = 0; i < others->num - 1; i++) {
        int64_t end_ns = others->answers[i].call.end_ns;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
    }
    bool has_numbers =
        says_numbers(refused->failure, tokens) ||
        says_numbers(refused->failure, pages_of(&run->report->budget, tokens));
    bool is_refused = refused->call.status == BAD_REQUEST && has_numbers;
    bool is_soon = refused->call.end_ns < last_ns;
    double ms = (double)(refused->call.end_ns - refused->call.begin_ns) / NS_PER_MS;
    serving_report_check(run->report, "what can never fit is refused with numbers",
                         is_refused && is_soon, "status %d after %.1f ms%s: %.240s",
                         refused->call.status, ms,
                         is_soon ? "" : ", when all others had ended", refused->failure);
}

static void check_waited(serving_run *run)
{
    serving_report *report = run->report;
    const serving_watch *watch = &run->watch;
    const serving_budget *budget = &report->budget;
    bool has_waited = watch->most_waiting > 0 &&
                      watch->most_running <= (double)budget->num_fit &&
                      watch->most_held <= (double)budget->num_pages;
    serving_report_check(
        report, "one long prompt more than fits waits", has_waited,
        "%lld sent, %lld fit; at most %.0f ran, %.0f waited and %.0f of %lld pages were "
        "used or promised",
        (long long)budget->num_fit + 1, (long long)budget->num_fit, watch->most_running,
        watch->most_waiting, watch->most_held, (long long)budget->num_pages);
}

/* One of those that are to be answered. */
static bool has_failed(const serving_group *group)
{
    for (int32_t i = 0; i < group->num - 1; i++) {
        if (group->answers[i].failure[0]) {
            return true;
        }
    }
    return false;
}

/* Short requests may end before the last one has come: then it had nothing to wait for. */
static mla_status run_beyond(serving_run *run, const serving_ask *asks,
                             serving_group *group, mla_error *err)
{
    for (int i = 0; i < MAX_ATTEMPTS; i++) {
        watch_forget(&run->watch);
        MLAI_TRY(serving_group_run(run, asks, group, err));
        if (run->watch.most_waiting > 0 || has_failed(group)) {
            break;
        }
    }
    return MLA_OK;
}

mla_status serving_run_beyond(serving_run *run, mla_error *err)
{
    static serving_ask asks[SERVING_MAX_BEYOND];
    serving_report *report = run->report;
    int64_t num_fit = report->budget.num_fit;
    int32_t num_prompts = report->wanted->num_prompts;
    if (num_fit < 1 || num_fit > SERVING_MAX_PROMPTS) {
        serving_report_check(report, "one long prompt more than fits waits", false,
                             "not tried: %lld such prompts fit the pool at once, and 1 to "
                             "%d can be sent; --prompt-tokens makes them longer",
                             (long long)num_fit, SERVING_MAX_PROMPTS);
        return MLA_OK;
    }
    int32_t num = (int32_t)num_fit + 1;
    serving_group group = {.answers = run->beyond, .num = num + 1};
    for (int32_t i = 0; i < num; i++) {
        asks[i] = ask_long(run, i, "beyond");
    }
    asks[num] = ask_too_much(run);
    MLAI_TRY(run_beyond(run, asks, &group, err));
    report->beyond_s = group.seconds;
    check_complete(run, "with one more than fits nothing is lost", &group, num);
    check_waited(run);
    check_same(run, "the others give the answers of the mixed load", run->beyond,
               run->mixed + report->wanted->num_answers,
               num < num_prompts ? num : num_prompts);
    check_refused(run, &run->beyond[num], &group);
    return MLA_OK;
}
