/* bound.h - how far an output and an lse may be from the oracle's: the bound that
 * docs/numerics.md derives, section by section. */
#ifndef MLA_ATTENTION_BOUND_H
#define MLA_ATTENTION_BOUND_H

#include <stdint.h>

/* One (row, head) and how its keys are summed. */
typedef struct mlai_bound_terms {
    int32_t width;        /* D+R */
    int64_t split_tokens; /* longest split */
    int32_t num_merges;   /* of splits, one after another */
    double score_magnitude, lse;
} mlai_bound_terms;

typedef struct mlai_bound {
    double relative; /* of an output, times A; the rounding to its dtype comes on top */
    double lse;
} mlai_bound;

mlai_bound mlai_bound_of(const mlai_bound_terms *terms);

#endif
