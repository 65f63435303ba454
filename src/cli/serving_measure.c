/* serving_measure.c - a server, the parts of the load, and what must be as it was before. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attention/context.h"
#include "attention/row_layout.h"
#include "base/size.h"
#include "base/status.h"
#include "cli/serve_pool.h"
#include "cli/serving_run.h"
#include "model/model.h"

enum { SETTLE_TRIES = 250, SETTLE_NS = 20000000, NUMBER_CHARS = 24, MAX_ARGUMENTS = 24 };

void serving_report_check(serving_report *report, const char *name, bool is_passed,
                          const char *format, ...)
{
    va_list values;
    if (report->num_checks < SERVING_MAX_CHECKS) {
        serving_check *check = &report->checks[report->num_checks++];
        check->name = name;
        check->is_passed = is_passed;
        va_start(values, format);
        (void)vsnprintf(check->detail, sizeof check->detail, format, values);
        va_end(values);
    }
}

bool serving_report_passed(const serving_report *report)
{
    bool is_passed = report->num_checks > 0;
    for (int32_t i = 0; i < report->num_checks; i++) {
        is_passed = is_passed && report->checks[i].is_passed;
    }
    return is_passed;
}

void serving_report_end(serving_report *report)
{
    json_decref(report->before);
    json_decref(report->during);
    json_decref(report->after);
    report->before = report->during = report->after = NULL;
}

/* ------------------------------------------------------------------- the budget */

static int64_t pages_of(const serving_budget *budget, int64_t prompt, int64_t answer)
{
    return mlai_ceil_div(prompt + answer - 1, budget->page_tokens);
}

static void size_requests(const serving_options *wanted, serving_budget *budget)
{
    budget->pages_a_prompt = pages_of(budget, wanted->prompt_tokens, wanted->answer_tokens);
    budget->pages_an_answer =
        pages_of(budget, SERVING_CHAT_PROMPT_TOKENS, wanted->answer_tokens);
    budget->num_fit = budget->num_pages / budget->pages_a_prompt;
}

static int64_t largest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Pages for exactly this load; places for one more request than has pages, so that it is
 * pages that it waits for. */
static void plan_budget(const serving_options *wanted, const model_config *config,
                        serving_budget *budget)
{
    budget->page_tokens = MODEL_PAGE_TOKENS;
    budget->page_bytes = serve_page_bytes(config, wanted->model.kv_format);
    size_requests(wanted, budget);
    budget->num_pages = wanted->num_prompts * budget->pages_a_prompt +
                        wanted->num_answers * budget->pages_an_answer;
    if (wanted->kv_bytes) {
        budget->num_pages = (int64_t)(wanted->kv_bytes / budget->page_bytes);
    }
    size_requests(wanted, budget);
    budget->num_places = largest(wanted->num_prompts + wanted->num_answers,
                                 largest(budget->num_fit + 1, SERVING_RATE_REQUESTS));
}

static mla_status check_load(const serving_options *wanted, const model_config *config,
                             mla_error *err)
{
    int64_t context =
        wanted->max_context_tokens ? wanted->max_context_tokens : config->max_positions;
    int64_t longest =
        largest(wanted->prompt_tokens, SERVING_CHAT_PROMPT_TOKENS) + wanted->answer_tokens;
    MLAI_CHECK(longest <= context, MLA_ERR_ARGUMENT,
               "a prompt of %lld tokens and an answer of %d are more than the context of "
               "%lld",
               (long long)(longest - wanted->answer_tokens), wanted->answer_tokens,
               (long long)context);
    return MLA_OK;
}

/* ------------------------------------------------------------------- the server */

typedef struct number_text {
    char text[NUMBER_CHARS];
} number_text;

static const char *put(number_text *out, uint64_t value)
{
    (void)snprintf(out->text, sizeof out->text, "%llu", (unsigned long long)value);
    return out->text;
}

static mla_status start(const serving_options *wanted, const serving_budget *budget,
                        serve_child *child, mla_error *err)
{
    number_text numbers[5];
    const char *kv = mlai_kv_format_name(wanted->model.kv_format);
    const char *arguments[MAX_ARGUMENTS] = {
        "serve",
        wanted->model.dir,
        "--port",
        "0",
        "--log-file",
        "/dev/null",
        "--kv",
        kv,
        "--kv-bytes",
        put(&numbers[0], (uint64_t)budget->num_pages * budget->page_bytes),
        "--max-requests",
        put(&numbers[1], (uint64_t)budget->num_places)};
    int num = 12;
    if (wanted->max_context_tokens) {
        arguments[num++] = "--max-context";
        arguments[num++] = put(&numbers[2], (uint64_t)wanted->max_context_tokens);
    }
    if (wanted->model.num_threads) {
        arguments[num++] = "--threads";
        arguments[num++] = put(&numbers[3], (uint64_t)wanted->model.num_threads);
    }
    if (wanted->draft_tokens) {
        arguments[num++] = "--draft-tokens";
        arguments[num++] = put(&numbers[4], (uint64_t)wanted->draft_tokens);
    }
    return serve_child_start(child, arguments, err);
}

/* What the server itself says of its pool, which of one that was started here is the plan. */
static void read_budget(serving_report *report, const json_t *ledger)
{
    serving_budget *budget = &report->budget;
    int64_t num_pages = watch_pages(ledger, "num");
    int64_t tokens = watch_pages(ledger, "tokens");
    int64_t bytes = watch_pages(ledger, "bytes");
    if (!report->wanted->url) {
        bool is_plan = num_pages == budget->num_pages && tokens == budget->page_tokens &&
                       (uint64_t)bytes == budget->page_bytes;
        serving_report_check(report, "the pool is what was computed", is_plan,
                             "%lld pages of %lld tokens and %lld bytes, for %lld",
                             (long long)num_pages, (long long)tokens, (long long)bytes,
                             (long long)budget->num_pages);
    }
    budget->num_pages = num_pages;
    budget->page_tokens = tokens > 0 ? tokens : 1;
    budget->page_bytes = (uint64_t)bytes;
    size_requests(report->wanted, budget);
}

/* ---------------------------------------------------------------- before and after */

/* The counters are those of the last whole step, which may not have been this one. */
static bool is_counted(const serving_run *run)
{
    const watch_figures *from = &run->watch.first;
    const watch_figures *to = &run->watch.figures;
    return to->new_tokens - from->new_tokens == (double)run->new_tokens;
}

static bool is_settled(const serving_run *run)
{
    const serving_watch *watch = &run->watch;
    return is_counted(run) &&
           watch_class_bytes(watch->now, "server") ==
               watch_class_bytes(watch->before, "server") &&
           watch_pages(watch->now, "used") == watch_pages(watch->before, "used") &&
           watch_pages(watch->now, "reserved") == watch_pages(watch->before, "reserved");
}

/* A server may take a moment to see that clients are gone. */
static mla_status settle(serving_run *run, mla_error *err)
{
    const struct timespec pause = {.tv_nsec = SETTLE_NS};
    for (int i = 0; i < SETTLE_TRIES; i++) {
        MLAI_TRY(watch_look(&run->watch, err));
        if (is_settled(run)) {
            break;
        }
        (void)nanosleep(&pause, NULL);
    }
    return MLA_OK;
}

static void check_pages(serving_report *report)
{
    int64_t unused =
        watch_pages(report->after, "free") + watch_pages(report->after, "cached");
    bool is_back =
        watch_pages(report->after, "used") == watch_pages(report->before, "used") &&
        watch_pages(report->after, "reserved") == watch_pages(report->before, "reserved") &&
        unused ==
            watch_pages(report->before, "free") + watch_pages(report->before, "cached");
    serving_report_check(report, "pages are back at their start", is_back,
                         "%lld used and %lld promised before, %lld and %lld after; %lld "
                         "free or cached",
                         (long long)watch_pages(report->before, "used"),
                         (long long)watch_pages(report->before, "reserved"),
                         (long long)watch_pages(report->after, "used"),
                         (long long)watch_pages(report->after, "reserved"),
                         (long long)unused);
}

static void check_memory(serving_report *report, const serving_watch *watch)
{
    int64_t before = watch_class_bytes(report->before, "server");
    int64_t after = watch_class_bytes(report->after, "server");
    serving_report_check(
        report, "nothing but `server` changes, and no restart",
        !watch->changed[0] && !watch->failure[0], "%d samples%s%s%s", watch->num_samples,
        watch->changed[0] || watch->failure[0] ? ": " : "", watch->changed, watch->failure);
    serving_report_check(report, "`server` is back at its start", before == after,
                         "%lld bytes before, %lld after, at most %lld between",
                         (long long)before, (long long)after,
                         (long long)watch->peak_server_bytes);
}

/* A request that was preempted would have had its prompt read, or tokens made, twice. */
static void check_counts(serving_report *report, const serving_run *run)
{
    const watch_figures *from = &run->watch.first;
    const watch_figures *to = &run->watch.figures;
    double prompts = to->prompt_tokens - from->prompt_tokens;
    double new_tokens = to->new_tokens - from->new_tokens;
    double lost = to->lost - from->lost;
    bool is_exact = prompts == (double)run->prompt_tokens &&
                    new_tokens == (double)run->new_tokens && lost == 0;
    serving_report_check(report, "each token is counted once, and no request was cut short",
                         is_exact,
                         "%.0f prompt tokens and %.0f new ones counted, %lld and %lld in "
                         "answers; %.0f requests cut short",
                         prompts, new_tokens, (long long)run->prompt_tokens,
                         (long long)run->new_tokens, lost);
}

static mla_status run_parts(serving_run *run, mla_error *err)
{
    MLAI_TRY(serving_run_alone(run, err));
    MLAI_TRY(serving_run_mixed(run, err));
    MLAI_TRY(serving_run_beyond(run, err));
    MLAI_TRY(serving_run_rates(run, err));
    return settle(run, err);
}

/* That a server is gone, or says what it should not, is a finding and no reason to lose the
 * others. */
static mla_status note_end(serving_report *report, mla_status status, mla_error *err)
{
    if (status == MLA_ERR_STATE || status == MLA_ERR_CORRUPT) {
        serving_report_check(report, "the server answers to the end", false, "%.300s",
                             err->message);
        return MLA_OK;
    }
    return status;
}

static void check_end(serving_run *run)
{
    serving_report *report = run->report;
    report->after = json_incref(run->watch.now);
    check_memory(report, &run->watch);
    check_pages(report);
    check_counts(report, run);
}

static mla_status load(serving_run *run, mla_error *err)
{
    serving_report *report = run->report;
    serving_watch *watch = &run->watch;
    MLAI_TRY(client_address_of(report->url, &watch->to, err));
    MLAI_TRY(watch_look(watch, err));
    watch_remember(watch);
    report->before = json_incref(watch->now);
    read_budget(report, watch->now);
    report->has_allocations = !isnan(watch->first.allocations);
    report->has_process = !isnan(watch->first.process + watch->first.start_seconds);
    report->has_cpu = !isnan(watch->first.loop_cpu_seconds);
    mla_status status = run_parts(run, err);
    report->num_samples = watch->num_samples;
    if (status != MLA_OK) {
        return note_end(report, status, err);
    }
    check_end(run);
    return MLA_OK;
}

static mla_status load_child(serving_run *run, serve_child *child, mla_error *err)
{
    serving_report *report = run->report;
    int exit_status = 0;
    MLAI_TRY(start(report->wanted, &report->budget, child, err));
    (void)snprintf(report->url, sizeof report->url, "%s", child->url);
    mla_status status = load(run, err);
    serve_child_stop(child, &exit_status);
    serving_report_check(report, "the server ends well", exit_status == 0,
                         "exit status %d after SIGTERM", exit_status);
    return status;
}

mla_status serving_measure(mla_context *context, const serving_options *wanted,
                           serving_report *report, mla_error *err)
{
    static serving_run run;
    serve_child child = {.file = -1};
    report->wanted = wanted;
    MLAI_TRY(model_config_read(mlai_context_ledger(context), wanted->model.dir,
                               &report->config, err));
    MLAI_TRY(check_load(wanted, &report->config, err));
    plan_budget(wanted, &report->config, &report->budget);
    serving_run_begin(&run, context, report);
    if (wanted->url) {
        (void)snprintf(report->url, sizeof report->url, "%s", wanted->url);
    }
    mla_status status = wanted->url ? load(&run, err) : load_child(&run, &child, err);
    serving_run_end(&run);
    return status;
}
