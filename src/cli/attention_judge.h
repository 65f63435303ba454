/* attention_judge.h - whether an attention result is right: one query row and head at a time
 * against what the double oracle says, within the bound of the backend that made it
 * (docs/numerics.md, docs/kernels/attend_cuda.md). */
#ifndef MLA_CLI_ATTENTION_JUDGE_H
#define MLA_CLI_ATTENTION_JUDGE_H

#include <stdbool.h>

#include "mla/mla.h"

enum { ATTENTION_LSE = -1 }; /* as a column: the lse */

/* What made the result. */
typedef struct attention_rule {
    mla_backend backend;
    const mla_caps *caps; /* read: dimensions, KV format, output_dtype */
    bool is_merged;       /* in double precision, of f32 parts of the row's keys */
} attention_rule;

/* What the oracle says of one row and head. */
typedef struct attention_expectation {
    const double *out, *magnitude; /* [D] */
    double lse, score_magnitude;
    int64_t num_keys; /* up to the last one that the row may see */
} attention_expectation;

typedef struct attention_answer {
    const void
        *output;     /* [D] of the type below, which holds what output_dtype rounded to */
    mla_dtype dtype; /* f32 or bf16 */
    float lse;
} attention_answer;

/* How far an answer may be from the expectation. */
typedef struct attention_allowance {
    double relative, rounding, absolute; /* of A; of |out|; whatever they are */
    double lse;
} attention_allowance;

attention_allowance attention_allowance_of(const attention_rule *rule,
                                           const attention_expectation *expected);
double attention_allowed(const attention_allowance *allowance,
                         const attention_expectation *expected, int32_t column);

typedef struct attention_finding {
    int64_t row;
    int32_t head, column;
    double got, expected, allowed;
} attention_finding;

/* |got - expected| as a share of what is allowed: wrong above 1. NaN, and an infinity in the
 * wrong place, are infinitely wrong. */
double attention_finding_share(const attention_finding *finding);

/* All zero: nothing was looked at. */
typedef struct attention_verdict {
    int64_t num_values, num_wrong;
    attention_finding first_wrong; /* where num_wrong > 0 */
    attention_finding worst_output, worst_lse;
} attention_verdict;

void attention_verdict_note(attention_verdict *verdict, const attention_finding *finding);
void attention_verdict_add(attention_verdict *to, const attention_verdict *from);

/* MLA_ERR_INTERNAL with the first wrong value. */
mla_status attention_verdict_status(const attention_verdict *verdict, mla_error *err);

/* Notes all values of one row and head. */
void attention_judge(const attention_rule *rule, const attention_expectation *expected,
                     const attention_answer *answer, int64_t row, int32_t head,
                     attention_verdict *verdict);

#endif
