/* qualify_serving.h - `mla qualify serving`: what is asked of a server, what is measured, and
 * what of it is a reason to fail. */
#ifndef MLA_CLI_QUALIFY_SERVING_H
#define MLA_CLI_QUALIFY_SERVING_H

#include "cli/model_options.h"
#include "cli/serve_child.h"
#include "cli/serving_answer.h"
#include "cli/serving_watch.h"
#include "model/config.h"

enum {
    SERVING_MAX_PROMPTS = 64,
    SERVING_MAX_ANSWERS = 32,
    SERVING_RATE_REQUESTS = 8,
    SERVING_MAX_CHECKS = 16,
    SERVING_COMMAND = 1024,
};

typedef struct serving_options {
    model_options model;
    const char *out, *url; /* NULL: none */
    int32_t num_prompts, prompt_tokens, num_answers, answer_tokens, draft_tokens;
    int64_t max_context_tokens; /* 0: the model's */
    uint64_t kv_bytes;          /* 0: what the load needs */
    float timeout_s;            /* of one part of the load */
    char command[SERVING_COMMAND];
} serving_options;

/* false: the command line is wrong, which has been said. */
bool serving_options_parse(int argc, char **argv, serving_options *out);

/* The budget by arithmetic; of a server that was not started here, what it says. */
typedef struct serving_budget {
    int64_t page_tokens, num_pages;
    uint64_t page_bytes;
    int64_t pages_a_prompt, pages_an_answer;
    int64_t num_fit;    /* long prompts at once */
    int64_t num_places; /* 0: not known */
} serving_budget;

typedef struct serving_check {
    const char *name; /* static storage */
    bool is_passed;
    char detail[SERVING_TEXT];
} serving_check;

/* Of requests of the same size that decode together. */
typedef struct serving_rate {
    bool is_known;
    double tokens_per_second; /* new tokens over the engine's own step time */
    double step_ms;
    double cpu_share;               /* of the step time; NaN: not told */
    double cpu_ms_a_token;          /* loop and worker */
    int64_t from_tokens, to_tokens; /* context of a request, at most */
} serving_rate;

typedef struct serving_spread {
    int32_t num;
    double median_ms, p99_ms, most_ms;
} serving_spread;

typedef struct serving_report {
    const serving_options *wanted;
    char url[SERVE_CHILD_TEXT];
    model_config config;
    serving_budget budget;
    serving_check checks[SERVING_MAX_CHECKS];
    int32_t num_checks;
    serving_spread first_alone, first_mixed, between_alone;
    serving_spread between_mixed,
        between_coding; /* all streams, and only the coding answers */
    serving_rate one, eight;
    double alone_s, mixed_s, beyond_s;
    json_t *before, *during, *after; /* /ledger */
    int32_t num_samples;
    bool has_allocations, has_cpu, has_process;
} serving_report;

void serving_report_check(serving_report *report, const char *name, bool is_passed,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
bool serving_report_passed(const serving_report *report);
void serving_report_end(serving_report *report);

/* Fills the report. What fails of the server is a check; an error is that of the machine. */
mla_status serving_measure(mla_context *context, const serving_options *wanted,
                           serving_report *report, mla_error *err);

/* NULL where memory is out. Owned by the caller. */
json_t *serving_receipt(const serving_report *report);
void serving_table_print(const serving_report *report);

int command_qualify_serving(int argc, char **argv);

#endif
