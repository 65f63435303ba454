/* split.h - where the keys of a row are cut into splits, as a pure function.
 *
 * A split is [k * s, (k + 1) * s) for k = 0, 1, ... with s = mlai_split_tokens(end), where
 * `end` is the end of the row's visible keys. s is a power of two that changes only when
 * `end` passes a power of two, so
 *   - the cuts of a row depend on its own position only (the invariance of docs/design.md),
 *   - neighbouring rows of a request nearly always share them and can share a task,
 *   - a row has at most MLAI_MAX_SPLITS splits. */
#ifndef MLA_ATTENTION_SPLIT_H
#define MLA_ATTENTION_SPLIT_H

#include <stdint.h>

enum { MLAI_MIN_SPLIT_TOKENS = 512, MLAI_MAX_SPLITS = 16 };

/* end >= 0. */
int64_t mlai_split_tokens(int64_t end);

#endif
