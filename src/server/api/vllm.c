/* vllm.c - our counts under the names that vLLM's dashboards and load generators look for. */
#include <stdio.h>

#include "server/api/exposition.h"

static void write_engine(const engine_stats *stats, const engine_limits *limits,
                         exposition *out)
{
    double used = limits->num_pages ? (double)stats->pages_used / limits->num_pages : 0;
    exposition_gauge(out, "vllm:num_requests_running", "Requests that run.",
                     (double)stats->num_running);
    exposition_gauge(out, "vllm:num_requests_waiting", "Requests that wait.",
                     (double)stats->num_waiting);
    exposition_gauge(out, "vllm:kv_cache_usage_perc", "Used part of the KV pool, 0 to 1.",
                     used);
    exposition_counter(out, "vllm:prefix_cache_queries_total",
                       "Prompt tokens that were looked for in the prefix cache.",
                       (double)stats->prompt_tokens);
    exposition_counter(out, "vllm:prefix_cache_hits_total", "Of these, found.",
                       (double)stats->cached_tokens);
    exposition_counter(out, "vllm:num_preemptions_total",
                       "Preempted requests: none ever is.", 0);
    exposition_counter(out, "vllm:prompt_tokens_total", "Tokens of prompts.",
                       (double)stats->prompt_tokens);
    exposition_counter(out, "vllm:prompt_tokens_cached_total",
                       "Of these, found in the prefix cache.",
                       (double)stats->cached_tokens);
    exposition_counter(out, "vllm:generation_tokens_total", "New tokens.",
                       (double)stats->new_tokens);
}

static void write_ends(const engine_stats *stats, exposition *out)
{
    exposition_begin(out, "vllm:request_success_total", "counter",
                     "Requests that ended, by why.");
    exposition_labelled(out, "finished_reason", "stop",
                        (double)stats->num_ended[ENGINE_STOP]);
    exposition_labelled(out, "finished_reason", "length",
                        (double)stats->num_ended[ENGINE_LENGTH]);
    exposition_labelled(out, "finished_reason", "abort",
                        (double)stats->num_ended[ENGINE_CANCELLED]);
    exposition_labelled(out, "finished_reason", "error",
                        (double)stats->num_ended[ENGINE_FAILED]);
}

static void write_drafts(const engine_stats *stats, exposition *out)
{
    char position[16];
    exposition_counter(out, "vllm:spec_decode_num_drafts_total", "Proposals.",
                       (double)stats->num_drafts);
    exposition_counter(out, "vllm:spec_decode_num_draft_tokens_total", "Proposed tokens.",
                       (double)stats->draft_tokens);
    exposition_counter(out, "vllm:spec_decode_num_accepted_tokens_total", "Accepted ones.",
                       (double)stats->accepted_tokens);
    exposition_begin(out, "vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter",
                     "Accepted ones by their place.");
    for (int i = 0; i < ENGINE_MAX_DRAFT; i++) {
        (void)snprintf(position, sizeof position, "%d", i);
        exposition_labelled(out, "position", position, (double)stats->accepted_at[i]);
    }
}

static void write_cache_config(const engine_limits *limits, exposition *out)
{
    char tokens[16];
    char pages[16];
    (void)snprintf(tokens, sizeof tokens, "%d", limits->page_tokens);
    (void)snprintf(pages, sizeof pages, "%d", limits->num_pages);
    exposition_begin(out, "vllm:cache_config_info", "gauge", "The KV pool.");
    exposition_pair(out, "block_size", tokens, "num_gpu_blocks", pages, 1);
}

void exposition_vllm(exposition *self, const api_settings *settings,
                     const engine_stats *stats)
{
    const engine_limits *limits = engine_limits_of(settings->engine);
    exposition named = {.out = self->out, .model_name = settings->model_name};
    write_engine(stats, limits, &named);
    write_ends(stats, &named);
    write_drafts(stats, &named);
    write_cache_config(limits, &named);
    for (int i = 0; i < API_NUM_SERIES; i++) {
        exposition_histogram(&named, settings->metrics, (api_series)i);
    }
}
