/* split.c - the length of a split: see split.h. */
#include "attention/split.h"

int64_t mlai_split_tokens(int64_t end)
{
    int64_t tokens = MLAI_MIN_SPLIT_TOKENS;
    while (tokens < end / MLAI_MAX_SPLITS + (end % MLAI_MAX_SPLITS > 0)) {
        tokens *= 2;
    }
    return tokens;
}
