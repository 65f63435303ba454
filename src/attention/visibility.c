/* visibility.c - which keys a row sees: see visibility.h. */
#include "attention/visibility.h"

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

int64_t mlai_visible_length(int32_t context_len, int64_t table_tokens)
{
    return clamp(context_len, 0, table_tokens);
}

mlai_key_range mlai_visible_keys(int64_t length, int32_t num_rows, int32_t row, bool causal,
                                 int32_t window)
{
    int64_t end = causal ? clamp(length - num_rows + row + 1, 0, length) : length;
    int64_t begin = window > 0 && end > window ? end - window : 0;
    return (mlai_key_range){begin, end};
}
