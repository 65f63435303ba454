/* prometheus.c - /metrics: what the engine, the books and the transport have counted, as
 * Prometheus reads it (text format 0.0.4). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/api/exposition.h"
#include "server/api/simple.h"

static const char *finish_name(int finish)
{
    static const char *const names[ENGINE_NUM_FINISHES] = {
        [ENGINE_STOP] = "stop",
        [ENGINE_LENGTH] = "length",
        [ENGINE_CANCELLED] = "abort",
        [ENGINE_FAILED] = "error",
    };
    return names[finish];
}

static double seconds(uint64_t ns)
{
    static const double ns_a_second = 1e9;
    return (double)ns / ns_a_second;
}

static void write_pages(const engine_stats *stats, const engine_limits *limits,
                        exposition *out)
{
    const struct row {
        const char *state;
        int32_t num;
    } rows[] = {
        {"used", stats->pages_used},
        {"cached", stats->pages_cached},
        {"free", stats->pages_free},
        {"reserved", stats->pages_reserved},
    };
    exposition_begin(out, "mla_kv_pages", "gauge",
                     "Pages of the KV pool; reserved ones are among the cached and free.");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        exposition_labelled(out, "state", rows[i].state, (double)rows[i].num);
    }
    exposition_gauge(out, "mla_kv_pages_total", "All pages of the KV pool.",
                     (double)limits->num_pages);
    exposition_gauge(out, "mla_kv_page_tokens", "Tokens of a page.",
                     (double)limits->page_tokens);
    exposition_gauge(out, "mla_kv_page_bytes", "Bytes of a page, all layers.",
                     (double)limits->page_bytes);
}

static void write_engine(const engine_stats *stats, exposition *out)
{
    exposition_gauge(out, "mla_requests_running", "Requests that have a place.",
                     (double)stats->num_running);
    exposition_gauge(out, "mla_requests_waiting", "Requests that wait for one.",
                     (double)stats->num_waiting);
    exposition_counter(out, "mla_engine_steps_total", "Steps that had work.",
                       (double)stats->num_steps);
    exposition_counter(out, "mla_engine_step_seconds_total", "Time in them.",
                       seconds(stats->step_ns));
    exposition_gauge(out, "mla_engine_last_step_rows", "Rows of the last step.",
                     (double)stats->last_step_rows);
    exposition_counter(out, "mla_prompt_tokens_total", "Tokens of prompts.",
                       (double)stats->prompt_tokens);
    exposition_counter(out, "mla_prompt_tokens_cached_total",
                       "Of these, found in the prefix cache.",
                       (double)stats->cached_tokens);
    exposition_counter(out, "mla_generation_tokens_total", "New tokens.",
                       (double)stats->new_tokens);
    exposition_begin(out, "mla_requests_ended_total", "counter", "Requests, by their end.");
    for (int i = ENGINE_STOP; i < ENGINE_NUM_FINISHES; i++) {
        exposition_labelled(out, "finish", finish_name(i), (double)stats->num_ended[i]);
    }
}

static void write_drafts(const engine_stats *stats, exposition *out)
{
    char position[16];
    exposition_counter(out, "mla_drafts_total", "Proposals of any length.",
                       (double)stats->num_drafts);
    exposition_counter(out, "mla_draft_tokens_total", "Tokens that were proposed.",
                       (double)stats->draft_tokens);
    exposition_counter(out, "mla_draft_tokens_accepted_total", "Of these, accepted.",
                       (double)stats->accepted_tokens);
    exposition_begin(out, "mla_draft_tokens_accepted_at_total", "counter",
                     "Accepted tokens by their place in the draft.");
    for (int i = 0; i < ENGINE_MAX_DRAFT; i++) {
        (void)snprintf(position, sizeof position, "%d", i);
        exposition_labelled(out, "position", position, (double)stats->accepted_at[i]);
    }
}

static void write_memory_kind(const mla_memory_report *report, bool is_peak,
                              exposition *out)
{
    exposition_begin(out, is_peak ? "mla_memory_peak_bytes" : "mla_memory_bytes", "gauge",
                     is_peak ? "The most there was, by class and space of the ledger."
                             : "Memory by class and space of the ledger.");
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
            const mla_memory_cell *cell = &report->cell[space][purpose];
            if (cell->peak_bytes > 0) {
                exposition_pair(out, "class", mla_purpose_name((mla_purpose)purpose),
                                "space", mla_space_name((mla_space)space),
                                (double)(is_peak ? cell->peak_bytes : cell->now_bytes));
            }
        }
    }
}

static void write_allocations(const mla_memory_report *report, exposition *out)
{
    exposition_begin(out, "mla_memory_allocations_total", "counter",
                     "Allocations by class and space of the ledger.");
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
            const mla_memory_cell *cell = &report->cell[space][purpose];
            if (cell->num_allocs > 0) {
                exposition_pair(out, "class", mla_purpose_name((mla_purpose)purpose),
                                "space", mla_space_name((mla_space)space),
                                (double)cell->num_allocs);
            }
        }
    }
}

static void write_memory(const api_settings *settings, exposition *out)
{
    mla_memory_report report = MLA_INIT(mla_memory_report);
    mla_error err = {0};
    if (mla_context_memory(engine_context_of(settings->engine), &report, &err) == MLA_OK) {
        write_memory_kind(&report, false, out);
        write_memory_kind(&report, true, out);
        write_allocations(&report, out);
    }
}

static double load(const _Atomic uint64_t *counter)
{
    return (double)atomic_load_explicit(counter, memory_order_relaxed);
}

/* Enough to see a restart, and what serving costs beside the engine. */
static void write_process(const api_settings *settings, exposition *out)
{
    const api_metrics *metrics = settings->metrics;
    exposition_gauge(out, "mla_start_time_seconds", "When the server began, since 1970.",
                     (double)settings->start_seconds);
    exposition_gauge(out, "mla_process_id", "The process.", (double)getpid());
    exposition_counter(out, "mla_loop_cpu_seconds_total",
                       "Processor time of the thread that has the connections.",
                       seconds(atomic_load(&metrics->loop_cpu_ns)));
    exposition_counter(out, "mla_worker_cpu_seconds_total",
                       "Processor time of the thread that prepares requests.",
                       seconds(atomic_load(&metrics->worker_cpu_ns)));
}

static void write_replies(const api_transport *transport, exposition *out)
{
    enum { NUM = sizeof transport->replies / sizeof transport->replies[0] };
    char status[16];
    exposition_begin(out, "mla_http_replies_total", "counter",
                     "Replies by status; 499: the client had left.");
    for (int i = 0; i < NUM; i++) {
        if (load(&transport->replies[i]) > 0) {
            (void)snprintf(status, sizeof status, "%d", i);
            exposition_labelled(out, "status", status, load(&transport->replies[i]));
        }
    }
}

static void write_transport(const api_transport *transport, exposition *out)
{
    exposition_gauge(out, "mla_http_connections_open", "Connections now.",
                     load(&transport->connections_open));
    exposition_counter(out, "mla_http_connections_total", "Connections that were accepted.",
                       load(&transport->connections));
    exposition_counter(out, "mla_http_connections_refused_total",
                       "Connections that were closed at once.",
                       load(&transport->connections_refused));
    exposition_gauge(out, "mla_http_requests_open", "Requests that are being answered.",
                     load(&transport->requests_open));
    exposition_counter(out, "mla_http_requests_total", "Requests of any path.",
                       load(&transport->requests));
    exposition_counter(out, "mla_http_disconnects_total",
                       "Clients that left before the end of their answer.",
                       load(&transport->disconnects));
    exposition_counter(out, "mla_http_slow_readers_total",
                       "Clients that were dropped with too much unread.",
                       load(&transport->slow_readers));
    exposition_counter(out, "mla_http_received_bytes_total", "Bytes from clients.",
                       load(&transport->bytes_in));
    exposition_counter(out, "mla_http_sent_bytes_total", "Bytes to clients.",
                       load(&transport->bytes_out));
    write_replies(transport, out);
}

static void write_metrics(const api_settings *settings, const engine_stats *stats,
                          exposition *out)
{
    api_metrics *metrics = settings->metrics;
    for (int i = 0; i < API_NUM_SERIES; i++) {
        exposition_histogram(out, metrics, (api_series)i);
    }
    if (settings->is_vllm_compatible) {
        exposition_vllm(out, settings, stats);
    }
    write_transport(&metrics->transport, out);
    write_process(settings, out);
}

bool api_metrics_write(const api_settings *settings, byte_buffer *out, api_failure *failure)
{
    mla_error err = {0};
    engine_stats stats = {0};
    api_text text = api_text_begin(out, &err);
    exposition page = {.out = &text};
    engine_stats_take(settings->engine, &stats);
    write_engine(&stats, &page);
    write_pages(&stats, engine_limits_of(settings->engine), &page);
    write_drafts(&stats, &page);
    write_memory(settings, &page);
    if (settings->metrics) {
        write_metrics(settings, &stats, &page);
    }
    return api_text_end(&text) == MLA_OK || api_fail_of(failure, &err, NULL);
}
