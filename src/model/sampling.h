/* sampling.h - from logits to a token. Random numbers depend on the request's seed and the
 * absolute position of the new token only. */
#ifndef MLA_MODEL_SAMPLING_H
#define MLA_MODEL_SAMPLING_H

#include <stdint.h>

typedef struct sampling_options {
    float temperature; /* 0: greedy (the lowest id among equals) */
    int32_t top_k;     /* 0: all */
    float top_p;       /* 1 (or 0): all */
    float min_p;       /* 0: all */
    uint64_t seed;
} sampling_options;

typedef struct sampling_candidate {
    float logit;
    int32_t id;
} sampling_candidate;

/* logits: [vocab] f32, read. scratch: [vocab]. */
int32_t sample_token(const float *logits, int32_t vocab_size,
                     const sampling_options *options, int64_t position,
                     sampling_candidate *scratch);

#endif
