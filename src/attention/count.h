/* count.h - the work of an attention call by counting, not by measuring. */
#ifndef MLA_ATTENTION_COUNT_H
#define MLA_ATTENTION_COUNT_H

#include "mla/mla.h"

typedef struct mlai_attention_count {
    double pairs; /* (query row, visible key), over all requests */
    double flops; /* 2 (D+R) + 2 D a pair and head: scores and values */
    double bytes; /* rows of the KV pool that some query row sees, each once */
} mlai_attention_count;

/* caps: geometry, causal and window, table_width. context_lens [num_requests],
 * query_starts [num_requests + 1]. Keys of pages outside the pool count like others. */
mlai_attention_count mlai_attention_count_of(const mla_caps *caps, int32_t num_requests,
                                             const int32_t *context_lens,
                                             const int32_t *query_starts);

#endif
