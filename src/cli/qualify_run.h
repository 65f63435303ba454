/* qualify_run.h - one case with one size of numbers, from its plans to a verdict. */
#ifndef MLA_CLI_QUALIFY_RUN_H
#define MLA_CLI_QUALIFY_RUN_H

#include "attention/plan_line.h"
#include "cli/qualify_rig.h"

typedef struct qualify_result {
    attention_verdict verdict[QUALIFY_NUM_SIZES]; /* against the oracle */
    attention_finding
        apart; /* 16 ranks from one device: the largest share of both bounds */
    char plan[QUALIFY_NUM_PARTS][MLAI_PLAN_LINE_BYTES];
    char failure[sizeof(((mla_error *)NULL)->message)]; /* of the first one; or "" */
    int64_t reach_bytes; /* how far into the pool pages lie */
    int32_t num_runs;    /* and replays */
} qualify_result;

/* plans: borrowed; [QUALIFY_SHARD] is NULL where the case has one rank. What is wrong, and what
 * fails, is in the result. */
void qualify_run(const qualify_case *c, mla_plan *const plans[QUALIFY_NUM_PARTS],
                 int64_t high_bytes, qualify_size size, const qualify_input *input,
                 qualify_result *result);

#endif
