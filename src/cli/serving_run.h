/* serving_run.h - the parts of the load of `mla qualify serving`, one after another. */
#ifndef MLA_CLI_SERVING_RUN_H
#define MLA_CLI_SERVING_RUN_H

#include "cli/qualify_serving.h"

/* Answers that are sent together. */
typedef struct serving_group {
    serving_answer *answers; /* [num] */
    int32_t num;
    double seconds;
} serving_group;

enum {
    SERVING_MAX_MIXED = SERVING_MAX_PROMPTS + SERVING_MAX_ANSWERS,
    SERVING_MAX_BEYOND = SERVING_MAX_PROMPTS + 2, /* one more, and one that never fits */
};

typedef struct serving_run {
    mla_context *context;
    serving_report *report;
    serving_watch watch;
    serving_answer alone[SERVING_MAX_ANSWERS], mixed[SERVING_MAX_MIXED];
    serving_answer beyond[SERVING_MAX_BEYOND], rate[SERVING_RATE_REQUESTS];
    int64_t prompt_tokens, new_tokens; /* of all answers, by their usage */
} serving_run;

/* Answers as none. */
void serving_run_begin(serving_run *run, mla_context *context, serving_report *report);
void serving_run_end(serving_run *run);

/* Sends all of the group at once and waits for the last. */
mla_status serving_group_run(serving_run *run, const serving_ask *asks,
                             serving_group *group, mla_error *err);

/* serving_parts.c */
mla_status serving_run_alone(serving_run *run, mla_error *err);
mla_status serving_run_mixed(serving_run *run, mla_error *err);
mla_status serving_run_beyond(serving_run *run, mla_error *err);
/* serving_rates.c */
mla_status serving_run_rates(serving_run *run, mla_error *err);
serving_spread serving_spread_first(const serving_group *group);
/* Between pieces of text, of the group's streams. */
serving_spread serving_spread_between(const serving_run *run, const serving_group *group);

#endif
