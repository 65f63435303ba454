/* serving_receipt.c - a report of `mla qualify serving` as JSON and as lines. */
#include <math.h>
#include <stdio.h>

#include "attention/row_layout.h"
#include "cli/build_info.h"
#include "cli/json_output.h"
#include "cli/machine.h"
#include "cli/qualify_serving.h"
#include "device/cpu.h"

/* a / b; null where that is no number. */
static json_t *ratio(double a, double b)
{
    return b > 0 && isfinite(a / b) ? json_real(a / b) : json_null();
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *machine_json(void)
{
    char name[64];
    mlai_cpu_name(name);
    return json_pack("{s:s, s:i, s:o}", "cpu", name, "allowed_cpus", (int)mlai_cpu_count(),
                     "memory", machine_memory());
}

static json_t *load_json(const serving_options *wanted)
{
    return json_pack("{s:s, s:b, s:i, s:i, s:i, s:i, s:I, s:s, s:i}", "model",
                     wanted->model.dir, "started_here", wanted->url == NULL, "prompts",
                     wanted->num_prompts, "prompt_tokens", wanted->prompt_tokens, "answers",
                     wanted->num_answers, "answer_tokens", wanted->answer_tokens,
                     "max_context", (json_int_t)wanted->max_context_tokens, "kv",
                     mlai_kv_format_name(wanted->model.kv_format), "draft_tokens",
                     wanted->draft_tokens);
}

static json_t *budget_json(const serving_budget *budget)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "pages",
                     (json_int_t)budget->num_pages, "page_tokens",
                     (json_int_t)budget->page_tokens, "page_bytes",
                     (json_int_t)budget->page_bytes, "bytes",
                     (json_int_t)budget->page_bytes * budget->num_pages, "pages_a_prompt",
                     (json_int_t)budget->pages_a_prompt, "pages_an_answer",
                     (json_int_t)budget->pages_an_answer, "prompts_that_fit",
                     (json_int_t)budget->num_fit, "places", (json_int_t)budget->num_places);
}

static json_t *checks_json(const serving_report *report)
{
    json_t *checks = json_array();
    for (int32_t i = 0; i < report->num_checks; i++) {
        const serving_check *check = &report->checks[i];
        (void)json_array_append_new(
            checks, json_pack("{s:s, s:b, s:s}", "name", check->name, "passed",
                              (int)check->is_passed, "detail", check->detail));
    }
    return checks;
}

static json_t *ratios_json(const serving_report *report)
{
    const serving_rate *one = &report->one;
    const serving_rate *eight = &report->eight;
    bool is_known = one->is_known && eight->is_known;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o}", "decode_of_8_over_1",
        is_known ? ratio(eight->tokens_per_second, one->tokens_per_second) : json_null(),
        "server_cpu_over_step_of_1", one->is_known ? number(one->cpu_share) : json_null(),
        "server_cpu_over_step_of_8",
        eight->is_known ? number(eight->cpu_share) : json_null(),
        "inter_token_p99_over_median",
        ratio(report->between_mixed.p99_ms, report->between_mixed.median_ms),
        "inter_token_p99_over_median_of_coding_answers",
        ratio(report->between_coding.p99_ms, report->between_coding.median_ms),
        "inter_token_median_mixed_over_alone",
        ratio(report->between_mixed.median_ms, report->between_alone.median_ms));
}

static json_t *spread_json(const serving_spread *spread)
{
    return json_pack("{s:i, s:o, s:o, s:o}", "num", spread->num, "median_ms",
                     json_output_rounded(spread->median_ms), "p99_ms",
                     json_output_rounded(spread->p99_ms), "most_ms",
                     json_output_rounded(spread->most_ms));
}

static json_t *rate_json(const serving_rate *rate)
{
    if (!rate->is_known) {
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o, s:I, s:I}", "tokens_per_second",
                     json_output_rounded(rate->tokens_per_second), "step_ms",
                     json_output_rounded(rate->step_ms), "server_cpu_ms_a_token",
                     number(rate->cpu_ms_a_token), "context_from",
                     (json_int_t)rate->from_tokens, "context_to",
                     (json_int_t)rate->to_tokens);
}

static json_t *measured_json(const serving_report *report)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "first_token_alone", spread_json(&report->first_alone),
                     "first_token_mixed", spread_json(&report->first_mixed),
                     "inter_token_alone", spread_json(&report->between_alone),
                     "inter_token_mixed", spread_json(&report->between_mixed),
                     "inter_token_of_coding_answers", spread_json(&report->between_coding),
                     "decode_of_1", rate_json(&report->one), "decode_of_8",
                     rate_json(&report->eight), "alone_s",
                     json_output_rounded(report->alone_s), "mixed_s",
                     json_output_rounded(report->mixed_s), "beyond_s",
                     json_output_rounded(report->beyond_s));
}

static json_t *ledger_json(const serving_report *report)
{
    return json_pack("{s:i, s:O?, s:O?, s:O?}", "samples", report->num_samples, "before",
                     report->before, "during", report->during, "after", report->after);
}

static json_t *not_shown_json(const serving_report *report)
{
    static const char *const always[] = {
        "Sampled answers, drafts unless asked for, stop strings, n and logprobs: every "
        "request is greedy and runs to its last token.",
        "That long answers are those that the prompts would get alone: they are compared "
        "between the mixed load and one request more.",
        "Clients on other machines, slow ones, and ones that leave.",
        "The class `other`, resident memory that nobody named: pages become resident when "
        "they are first written.",
        "A GPU.",
    };
    json_t *out = json_array();
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        (void)json_array_append_new(out, json_string(always[i]));
    }
    const struct row {
        bool is_shown;
        const char *sentence;
    } rows[] = {
        {report->one.is_known && report->eight.is_known,
         "How fast eight decode beside one: they had no room, or ended between two looks."},
        {report->has_allocations, "The number of allocations: the server does not count."},
        {report->has_process, "That it is one process: the server does not say which."},
        {report->has_cpu, "The processor time of the server's threads: it does not say."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].is_shown) {
            (void)json_array_append_new(out, json_string(rows[i].sentence));
        }
    }
    return out;
}

json_t *serving_receipt(const serving_report *report)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "commit", MLA_BUILD_COMMIT, "compiler", MLA_BUILD_COMPILER, "command",
                     report->wanted->command, "machine", machine_json(), "passed",
                     (int)serving_report_passed(report), "load", load_json(report->wanted),
                     "budget", budget_json(&report->budget), "checks", checks_json(report),
                     "ratios", ratios_json(report), "measured", measured_json(report),
                     "ledger", ledger_json(report), "not_shown", not_shown_json(report));
}

/* ----------------------------------------------------------------------- lines */

static void print_rates(const serving_report *report)
{
    const serving_rate *one = &report->one;
    const serving_rate *eight = &report->eight;
    if (!one->is_known || !eight->is_known) {
        (void)printf("decode of 8 over 1: not measured\n");
        return;
    }
    (void)printf("decode of 8 over 1: %.2f x (%.0f and %.0f tokens/s of the engine's "
                 "steps, medians; "
                 "contexts of %lld to %lld tokens)\n",
                 eight->tokens_per_second / one->tokens_per_second,
                 eight->tokens_per_second, one->tokens_per_second,
                 (long long)one->from_tokens, (long long)eight->to_tokens);
    if (report->has_cpu) {
        (void)printf(
            "server's CPU per token over the engine's step: %.2f %% of one request, "
            "%.2f %% of eight (%.3f and %.3f ms a token; steps of %.2f and %.2f "
            "ms)\n",
            100 * one->cpu_share, 100 * eight->cpu_share, one->cpu_ms_a_token,
            eight->cpu_ms_a_token, one->step_ms, eight->step_ms);
    }
}

static void print_spread(const char *what, const serving_spread *spread)
{
    (void)printf("between tokens, %s: p99 over median %.2f x (%.2f and %.2f ms of %d)\n",
                 what, spread->p99_ms / spread->median_ms, spread->p99_ms,
                 spread->median_ms, spread->num);
}

static void print_times(const serving_report *report)
{
    print_spread("alone", &report->between_alone);
    print_spread("coding answers in the mixed load", &report->between_coding);
    print_spread("all streams of the mixed load", &report->between_mixed);
    (void)printf(
        "to the first token: median %.1f ms alone, %.1f ms mixed, at most %.1f ms\n",
        report->first_alone.median_ms, report->first_mixed.median_ms,
        report->first_mixed.most_ms);
}

void serving_table_print(const serving_report *report)
{
    const serving_options *wanted = report->wanted;
    (void)printf(
        "%s: %d prompts of %d tokens and %d coding answers, %d new tokens each, in "
        "%lld pages of %lld tokens; %lld such prompts fit\n",
        wanted->model.dir, wanted->num_prompts, wanted->prompt_tokens, wanted->num_answers,
        wanted->answer_tokens, (long long)report->budget.num_pages,
        (long long)report->budget.page_tokens, (long long)report->budget.num_fit);
    for (int32_t i = 0; i < report->num_checks; i++) {
        const serving_check *check = &report->checks[i];
        (void)printf("  %-6s %s: %s\n", check->is_passed ? "passed" : "FAILED", check->name,
                     check->detail);
    }
    print_rates(report);
    print_times(report);
}
