/* carve.h - many arrays out of one block. The same function lays the arrays out twice: with
 * no block, to learn the size, and with it, to get the pointers. */
#ifndef MLA_MODEL_CARVE_H
#define MLA_MODEL_CARVE_H

#include "base/size.h"

enum { CARVE_ALIGN_BYTES = 64 };

typedef struct carve {
    unsigned char *base; /* NULL: only counting */
    size_t used_bytes;
    bool is_overflown;
} carve;

/* [num] items, CARVE_ALIGN_BYTES aligned; NULL while counting. */
static inline void *carve_take(carve *block, size_t num, size_t item_bytes)
{
    size_t bytes;
    size_t end;
    void *out = block->base ? block->base + block->used_bytes : NULL;
    if (!mlai_size_mul(num, item_bytes, &bytes) ||
        !mlai_size_add(block->used_bytes, bytes, &end) ||
        !mlai_size_round_up(end, CARVE_ALIGN_BYTES, &block->used_bytes)) {
        block->is_overflown = true;
    }
    return block->is_overflown ? NULL : out;
}

#endif
