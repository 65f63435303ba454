/* serving_watch.c - samples of the books and the counters: see serving_watch.h. */
#include "cli/serving_watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/serving_answer.h"

enum {
    HTTP_OK = 200,
    WAIT_MS = 100,
    PAUSE_NS = 10000000,
    LOOK_SECONDS = 30,
    LOOKS = 256,
    NUM_TRIES = 16
};
#define NS_PER_SECOND INT64_C(1000000000)

serving_watch watch_none(mla_context *context)
{
    return (serving_watch){.ledger_call = client_call_none(context),
                           .metrics_call = client_call_none(context),
                           .ledger_pause_ns = PAUSE_NS,
                           .metrics_pause_ns = PAUSE_NS};
}

void watch_end(serving_watch *watch)
{
    client_call_end(&watch->ledger_call);
    client_call_end(&watch->metrics_call);
    json_decref(watch->before);
    json_decref(watch->now);
    json_decref(watch->during);
    watch->before = watch->now = watch->during = NULL;
}

int64_t watch_pages(const json_t *ledger, const char *state)
{
    return json_integer_value(json_object_get(json_object_get(ledger, "pages"), state));
}

static const json_t *class_of(const json_t *ledger, const char *name)
{
    return json_object_get(json_object_get(ledger, "classes"), name);
}

int64_t watch_class_bytes(const json_t *ledger, const char *name)
{
    return json_integer_value(json_object_get(class_of(ledger, name), "now"));
}

/* ----------------------------------------------------------------- the counters */

/* The sum of a metric's lines, those with `but` left out. */
static double sum_of(const char *text, const char *name, const char *but)
{
    double sum = (double)NAN;
    size_t length = strlen(name);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t bytes = strcspn(line, "\n");
        bool is_it = strncmp(line, name, length) == 0 &&
                     (line[length] == ' ' || line[length] == '{');
        const char *barred = is_it && but ? strstr(line, but) : NULL;
        const char *value = is_it ? memrchr(line, ' ', bytes) : NULL;
        if (value && !(barred && barred < line + bytes)) {
            sum = (isnan(sum) ? 0 : sum) + strtod(value, NULL);
        }
    }
    return sum;
}

static watch_figures figures_of(const char *text)
{
    return (watch_figures){
        .running = sum_of(text, "mla_requests_running", NULL),
        .waiting = sum_of(text, "mla_requests_waiting", NULL),
        .held_pages = sum_of(text, "mla_kv_pages{state=\"used\"}", NULL) +
                      sum_of(text, "mla_kv_pages{state=\"reserved\"}", NULL),
        .steps = sum_of(text, "mla_engine_steps_total", NULL),
        .step_seconds = sum_of(text, "mla_engine_step_seconds_total", NULL),
        .prompt_tokens = sum_of(text, "mla_prompt_tokens_total", NULL),
        .new_tokens = sum_of(text, "mla_generation_tokens_total", NULL),
        .lost = sum_of(text, "mla_requests_ended_total{finish=\"abort\"}", NULL) +
                sum_of(text, "mla_requests_ended_total{finish=\"error\"}", NULL),
        .loop_cpu_seconds = sum_of(text, "mla_loop_cpu_seconds_total", NULL),
        .worker_cpu_seconds = sum_of(text, "mla_worker_cpu_seconds_total", NULL),
        .start_seconds = sum_of(text, "mla_start_time_seconds", NULL),
        .process = sum_of(text, "mla_process_id", NULL),
        .allocations = sum_of(text, "mla_memory_allocations_total", "class=\"server\""),
    };
}

static void note_change(serving_watch *watch, const char *what, const char *from,
                        const char *to)
{
    if (!watch->changed[0]) {
        (void)snprintf(watch->changed, sizeof watch->changed,
                       "%.40s was %.90s and became %.90s", what, from, to);
    }
}

static void compare_number(serving_watch *watch, const char *what, double from, double to)
{
    char texts[2][32];
    if (!isnan(from) && from != to) {
        (void)snprintf(texts[0], sizeof texts[0], "%.17g", from);
        (void)snprintf(texts[1], sizeof texts[1], "%.17g", to);
        note_change(watch, what, texts[0], texts[1]);
    }
}

/* Of one whole step of the engine, while the ledger's map of pages may be in the middle of one. */
static void take_gauges(serving_watch *watch)
{
    const watch_figures *now = &watch->figures;
    watch->most_held = fmax(watch->most_held, now->held_pages);
    watch->most_running = fmax(watch->most_running, now->running);
    watch->most_waiting = fmax(watch->most_waiting, now->waiting);
}

static void take_metrics(serving_watch *watch, const char *text, bool is_steady)
{
    watch->figures = figures_of(text);
    take_gauges(watch);
    if (watch->before) {
        const watch_figures *first = &watch->first;
        compare_number(watch, "the number of allocations", first->allocations,
                       watch->figures.allocations);
        compare_number(watch, "the process", first->process, watch->figures.process);
        compare_number(watch, "the start of the server", first->start_seconds,
                       watch->figures.start_seconds);
    }
    if (watch->is_armed && is_steady) {
        watch->end = watch->figures;
        watch->begin = watch->has_begin ? watch->begin : watch->figures;
        watch->num_looks += watch->has_begin;
        watch->has_end = watch->has_begin;
        watch->has_begin = true;
    }
    watch->is_armed = false;
}

/* ------------------------------------------------------------------- the ledger */

/* `server` comes and goes with connections; `other` is resident memory that nobody named, and
 * pages become resident when they are first written. */
static void compare_classes(serving_watch *watch)
{
    const char *name = NULL;
    json_t *then = NULL;
    json_object_foreach(json_object_get(watch->before, "classes"), name, then)
    {
        const json_t *now = class_of(watch->now, name);
        bool is_free = strcmp(name, "server") == 0 || strcmp(name, "other") == 0;
        if (!is_free && !json_equal(then, now)) {
            char *from = json_dumps(then, JSON_COMPACT);
            char *to = json_dumps(now, JSON_COMPACT | JSON_ENCODE_ANY);
            note_change(watch, name, from ? from : "", to ? to : "");
            serving_text_release(from);
            serving_text_release(to);
        }
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t held_pages(const json_t *ledger)
{
    return watch_pages(ledger, "used") + watch_pages(ledger, "reserved");
}

static void take_ledger(serving_watch *watch, json_t *ledger)
{
    json_decref(watch->now);
    watch->now = ledger;
    watch->num_samples++;
    watch->peak_server_bytes =
        larger(watch->peak_server_bytes, watch_class_bytes(ledger, "server"));
    if (!watch->during || held_pages(ledger) > held_pages(watch->during)) {
        json_decref(watch->during);
        watch->during = json_incref(ledger);
    }
    compare_classes(watch);
}

/* -------------------------------------------------------------------- the asking */

static bool is_good(serving_watch *watch, const client_call *call, const char *path)
{
    if ((call->failure[0] || call->status != HTTP_OK) && !watch->failure[0]) {
        (void)snprintf(watch->failure, sizeof watch->failure, "GET %s: status %d %s", path,
                       call->status, call->failure);
    }
    return !call->failure[0] && call->status == HTTP_OK;
}

static mla_status take_replies(serving_watch *watch, bool is_steady, mla_error *err)
{
    client_call *call = &watch->ledger_call;
    if (call->is_done && call->begin_ns && is_good(watch, call, "/ledger")) {
        json_t *ledger = json_loadb(call->body.data, call->body.num, 0, NULL);
        MLAI_CHECK(json_is_object(class_of(ledger, "server")), MLA_ERR_CORRUPT,
                   "/ledger has no class server");
        take_ledger(watch, ledger);
    }
    watch->ledger_call.begin_ns = call->is_done ? 0 : call->begin_ns;
    call = &watch->metrics_call;
    if (call->is_done && call->begin_ns && is_good(watch, call, "/metrics")) {
        MLAI_TRY(client_append(&call->body, "", 1, err));
        take_metrics(watch, call->body.data, is_steady);
    }
    watch->metrics_call.begin_ns = call->is_done ? 0 : call->begin_ns;
    return MLA_OK;
}

/* A load of hours needs no more looks than one of seconds, but for the logarithm. */
static bool is_due(const serving_watch *watch, const client_call *call, int64_t pause_ns,
                   int64_t now_ns)
{
    int64_t least_ns = (now_ns - watch->begin_ns) / LOOKS;
    return call->is_done &&
           now_ns >= call->end_ns + (pause_ns > least_ns ? pause_ns : least_ns);
}

mla_status watch_step(serving_watch *watch, bool is_steady, mla_error *err)
{
    int64_t now_ns = mlai_now_ns();
    client_call *ledger = &watch->ledger_call;
    client_call *metrics = &watch->metrics_call;
    MLAI_TRY(take_replies(watch, is_steady, err));
    if (is_due(watch, ledger, watch->ledger_pause_ns, now_ns)) {
        MLAI_TRY(client_call_begin(ledger, &watch->to, "/ledger", NULL, err));
    }
    if (is_due(watch, metrics, watch->metrics_pause_ns, now_ns)) {
        watch->is_armed = is_steady;
        MLAI_TRY(client_call_begin(metrics, &watch->to, "/metrics", NULL, err));
    }
    return MLA_OK;
}

static mla_status wait_for(serving_watch *watch, client_call *call, mla_error *err)
{
    int64_t give_up_ns = mlai_now_ns() + LOOK_SECONDS * NS_PER_SECOND;
    while (!call->is_done) {
        MLAI_TRY(client_poll(&call, 1, WAIT_MS, err));
        MLAI_CHECK(mlai_now_ns() < give_up_ns, MLA_ERR_STATE,
                   "a GET of %s had no answer within %d s", watch->to.host, LOOK_SECONDS);
    }
    return take_replies(watch, false, err);
}

static mla_status get(serving_watch *watch, client_call *call, const char *path,
                      mla_error *err)
{
    MLAI_TRY(client_call_begin(call, &watch->to, path, NULL, err));
    MLAI_TRY(wait_for(watch, call, err));
    MLAI_CHECK(!call->failure[0] && call->status == HTTP_OK, MLA_ERR_STATE,
               "GET %s of %s: status %d %s", path, watch->to.host, call->status,
               call->failure);
    return MLA_OK;
}

/* What was asked before is waited for, so that there is but one connection at a time. */
mla_status watch_look(serving_watch *watch, mla_error *err)
{
    MLAI_TRY(wait_for(watch, &watch->ledger_call, err));
    MLAI_TRY(wait_for(watch, &watch->metrics_call, err));
    MLAI_TRY(get(watch, &watch->metrics_call, "/metrics", err));
    return get(watch, &watch->ledger_call, "/ledger", err);
}

mla_status watch_cost_of_look(serving_watch *watch, double *seconds, mla_error *err)
{
    MLAI_TRY(watch_look(watch, err));
    MLAI_TRY(get(watch, &watch->metrics_call, "/metrics", err));
    double before = watch->figures.loop_cpu_seconds;
    for (int i = 0; i < NUM_TRIES; i++) {
        MLAI_TRY(get(watch, &watch->metrics_call, "/metrics", err));
    }
    *seconds = (watch->figures.loop_cpu_seconds - before) / NUM_TRIES;
    return MLA_OK;
}

void watch_remember(serving_watch *watch)
{
    json_decref(watch->before);
    watch->before = json_incref(watch->now);
    watch->first = watch->figures;
    watch->changed[0] = '\0';
    watch_forget(watch);
}

void watch_forget(serving_watch *watch)
{
    watch->begin_ns = mlai_now_ns();
    watch->num_looks = 0;
    watch->most_held = watch->most_running = watch->most_waiting = 0;
    watch->is_armed = watch->has_begin = watch->has_end = false;
    json_decref(watch->during);
    watch->during = NULL;
}
