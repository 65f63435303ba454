/* bpe.h - one piece of text becomes tokens: its bytes' tokens, merged pair by pair, always
 * the pair of lowest rank first and the leftmost of equals. */
#ifndef MLA_MODEL_BPE_H
#define MLA_MODEL_BPE_H

#include "model/vocabulary.h"

/* Memory of one encoding, grown to the longest piece. */
typedef struct bpe_scratch {
    mlai_ledger *ledger;
    struct bpe_symbol *symbols;  /* [capacity] */
    struct bpe_candidate *queue; /* [3 * capacity] */
    size_t capacity;
} bpe_scratch;

void bpe_scratch_free(bpe_scratch *scratch); /* all 0 but the ledger is allowed */

/* Writes at most num_bytes ids to `out` and their number to *num_out. num_bytes in
 * [1, 2^30]. O(n log n). Memory is class server. */
mla_status bpe_encode(const vocabulary *v, bpe_scratch *scratch, const char *piece,
                      size_t num_bytes, int32_t *out, size_t *num_out, mla_error *err);

#endif
