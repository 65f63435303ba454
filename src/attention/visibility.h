/* visibility.h - which keys of its request a query row sees, as pure functions.
 *
 * Causal rows are right-aligned: the last row sits on the last key, so row i of Q rows over
 * L keys sees [0, L - Q + i]. A window keeps the last `window` of what a row would see. */
#ifndef MLA_ATTENTION_VISIBILITY_H
#define MLA_ATTENTION_VISIBILITY_H

#include <stdbool.h>
#include <stdint.h>

/* Keys [begin, end) of a request, counted from its key 0 on this rank; empty where
 * begin >= end. */
typedef struct mlai_key_range {
    int64_t begin, end;
} mlai_key_range;

/* Keys that a request of this length has: 0 where it is negative, and no more than its page
 * table can name. */
int64_t mlai_visible_length(int32_t context_len, int64_t table_tokens);

/* Keys that row `row` of `num_rows` sees of `length`. window 0: all. */
mlai_key_range mlai_visible_keys(int64_t length, int32_t num_rows, int32_t row, bool causal,
                                 int32_t window);

#endif
