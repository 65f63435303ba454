/* bound.c - the bound's arithmetic: see bound.h. */
#include "attention/bound.h"

#include <math.h>

static const double u = 0x1p-24;

mlai_bound mlai_bound_of(const mlai_bound_terms *terms)
{
    double score = terms->score_magnitude;
    double tiles = ceil((double)terms->split_tokens / 64);
    double merges = terms->num_merges;
    double chain = terms->width / 8.0 + 9; /* roundings on the way to a score */
    double size = score + log((double)terms->split_tokens * (merges + 1));
    double delta = u * (chain * score + 2 * merges * size);
    double count = 140 + 9 * tiles + 10 * merges;
    return (mlai_bound){
        .relative = expm1(2 * delta) + count * u,
        .lse = delta + count * u + 4 * u * (fabs(terms->lse) + 16),
    };
}
