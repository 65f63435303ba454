/* placement.h - context parallelism: which rank keeps which token, as pure functions.
 *
 * Of W ranks with interleave I, tokens lie in runs of I, dealt out in turn:
 *
 *   position   0 .. I-1 | I .. 2I-1 | ... | WI .. WI+I-1 | ...
 *   rank       0        | 1         | ... | 0            | ... */
#ifndef MLA_ATTENTION_PLACEMENT_H
#define MLA_ATTENTION_PLACEMENT_H

#include <stdint.h>

typedef struct mlai_placement {
    int32_t num_ranks;  /* W >= 1 */
    int32_t interleave; /* I >= 1 */
} mlai_placement;

/* position >= 0. */
int32_t mlai_placement_owner(mlai_placement placement, int64_t position);

/* Which of its owner's tokens the one at `position` is. */
int64_t mlai_placement_local_index(mlai_placement placement, int64_t position);

/* How many of the first `length` tokens rank `rank` keeps. Of a row that sees only part of a
 * request, ask with the row's own length: local counts of the whole cannot be cut down. */
int64_t mlai_placement_local_length(mlai_placement placement, int32_t rank, int64_t length);

#endif
