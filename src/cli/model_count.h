/* model_count.h - the work of a forward pass by counting, not by measuring. */
#ifndef MLA_CLI_MODEL_COUNT_H
#define MLA_CLI_MODEL_COUNT_H

#include "model/config.h"

typedef struct model_count {
    double flops,
        bytes; /* bytes: weights that some row needs, and latent rows, each once */
} model_count;

/* One prefill of num_tokens positions from 0, logits of the last row, un-absorbed. */
model_count model_count_prefill(const model_config *config, int64_t num_tokens,
                                double row_bytes);

/* One absorbed step of num_sequences rows, each after `context` tokens. Routed experts count
 * as if no two rows shared one. */
model_count model_count_decode(const model_config *config, int32_t num_sequences,
                               int64_t context, double row_bytes);

#endif
