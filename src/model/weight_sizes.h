/* weight_sizes.h - the bytes of a model's weights, tensor by tensor, from its config alone.
 *
 * Ranks share the work as Megatron's tensor parallelism does: the vocabulary, the heads and the
 * inner widths are cut, into rows of what writes them and columns of what reads them; norms, the
 * router, the low-rank projections q_a and kv_a and all other small things are on every rank.
 * With expert ranks E, the routed experts are first dealt out whole to E groups of ranks. The
 * latent width of latent experts is cut as an inner width is. */
#ifndef MLA_MODEL_WEIGHT_SIZES_H
#define MLA_MODEL_WEIGHT_SIZES_H

#include "model/model_shape.h"
#include "model/weight_format.h"

typedef struct weight_storage {
    weight_format experts; /* the routed experts' matrices */
    weight_format linears; /* every other matrix of a layer, but the router */
    weight_format others;  /* the embedding, the head, norms, router: bf16 or f32 */
    int32_t num_ranks;     /* tensor parallel */
    int32_t expert_ranks;  /* divides num_ranks */
} weight_storage;

typedef struct weight_sizes {
    /* Of the rank that has most. */
    uint64_t embedding_bytes; /* and the head */
    uint64_t attention_bytes;
    uint64_t mlp_bytes; /* dense ones and shared experts */
    uint64_t expert_bytes;
    uint64_t other_bytes; /* norms, routers */
    uint64_t bytes;       /* all of the above */
    uint64_t mtp_bytes;   /* the layers after the last, with the embedding and the head that
                             the file has once more for each */
    uint64_t num_parameters, num_mtp_parameters; /* over all ranks, each once; no scales */
} weight_sizes;

/* MLA_ERR_ARGUMENT where the ranks do not divide what they cut, or the sum does not fit. */
mla_status weight_sizes_of(const model_shape *shape, const weight_storage *storage,
                           weight_sizes *out, mla_error *err);

#endif
