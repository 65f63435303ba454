/* qualify_case.h - the acceptance matrix: three pairs of formats, on one device with 6 heads
 * and over 16 ranks with 96, each with padded tables, with pages high up in the pool, and in
 * f32 by replays of one recording. */
#ifndef MLA_CLI_QUALIFY_CASE_H
#define MLA_CLI_QUALIFY_CASE_H

#include "attention/row_layout.h"

enum {
    QUALIFY_NUM_CASES = 18,
    QUALIFY_NUM_FORMATS = 3,
    QUALIFY_NUM_KINDS = 3,
    QUALIFY_RANKS = 16,
    QUALIFY_REQUESTS = 15,
    QUALIFY_ROWS = 25,       /* query rows of all requests: the capacity */
    QUALIFY_TOKENS = 1100,   /* of the longest request */
    QUALIFY_INDICES = 128,   /* pages that a case can use */
    QUALIFY_VARIANT = 64,    /* from the pages of one content to those of the next */
    QUALIFY_INTERLEAVE = 32, /* of shards: from those of interleave 1 to those of 16 */
    QUALIFY_PAGE = 64,
    QUALIFY_LATENT = 512,
    QUALIFY_WIDTH = 576,
};

typedef enum qualify_kind { QUALIFY_PADDED, QUALIFY_HIGH, QUALIFY_REPLAY } qualify_kind;

/* All keys of a request, or those of one rank. In a part that is one rank's each query row
 * is a request of its own: it has a local length of its own. */
typedef enum qualify_part { QUALIFY_WHOLE, QUALIFY_SHARD, QUALIFY_NUM_PARTS } qualify_part;

typedef struct qualify_case {
    char name[32];
    int32_t format; /* in [0, QUALIFY_NUM_FORMATS) */
    mla_kv_format kv_format;
    mla_dtype query_dtype;
    int32_t num_ranks, num_heads;
    qualify_kind kind;
} qualify_case;

/* index in [0, QUALIFY_NUM_CASES). Cases of the same format and heads follow each other. */
qualify_case qualify_case_of(int32_t index);

/* high_bytes: where pages count as high; only the kind of that name has so large a pool. */
mla_caps qualify_case_caps(const qualify_case *c, qualify_part part, int64_t high_bytes);

/* The physical page of the index-th in use: another for each index. Every second one of high
 * pages lies beyond high_bytes. */
int32_t qualify_case_page(const qualify_case *c, const mla_caps *caps, int32_t index);

#endif
