/* arena.h - memory that is taken piece by piece and given back all at once: the tables of
 * a tokenizer. */
#ifndef MLA_MODEL_ARENA_H
#define MLA_MODEL_ARENA_H

#include "base/ledger.h"

typedef struct arena {
    mlai_ledger *ledger;
    mla_purpose purpose;
    struct arena_block *newest;
} arena;

/* Zeroed, aligned to 16. num * item_bytes is checked; 0 gives a pointer not to be read.
 * *out: until arena_free. */
mla_status arena_take(arena *from, size_t num, size_t item_bytes, const char *what,
                      void **out, mla_error *err);
void arena_free(arena *from); /* may be used again after */

#endif
