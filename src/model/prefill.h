/* prefill.h - between the two files of prefill. */
#ifndef MLA_MODEL_PREFILL_H
#define MLA_MODEL_PREFILL_H

#include "model/state.h"

/* q -> attended, for the rows of the chunk, which are in the cache already. */
void prefill_attend(const model_pass *pass, int32_t layer, const model_chunk *chunk);

#endif
