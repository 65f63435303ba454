/* memory.h - the memory of one call: blocks that are given back together. Class server. */
#ifndef MLA_SERVER_API_MEMORY_H
#define MLA_SERVER_API_MEMORY_H

#include "base/ledger.h"

/* Born as {.ledger = ledger}. */
typedef struct api_memory {
    mlai_ledger *ledger;
    struct api_block *last;
} api_memory;

/* num items, not zeroed; none is a block, too. *out: owned by the memory. */
mla_status api_memory_take(api_memory *memory, size_t num, size_t item_bytes,
                           const char *what, void **out, mla_error *err);
/* The bytes of text, and a zero behind them. */
mla_status api_memory_copy(api_memory *memory, const char *text, size_t bytes,
                           const char **out, mla_error *err);
void api_memory_free(api_memory *memory);

#endif
