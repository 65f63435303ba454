/* footprint.h - the memory that one rank of a deployment holds, class by class, by arithmetic: no
 * weights are read and no device is asked. Where ranks differ, it is the fullest one's.
 *
 * The figures of libmla's own are those that libmla would ask for: rows, pages, tables, operands
 * and workspaces come from the same functions that plans are made with. */
#ifndef MLA_MODEL_FOOTPRINT_H
#define MLA_MODEL_FOOTPRINT_H

#include "model/profile.h"

enum { FOOTPRINT_MAX_PARTS = 6 };

typedef struct footprint_part {
    const char *name; /* static storage; NULL after the last */
    uint64_t bytes;
} footprint_part;

typedef struct footprint_class {
    uint64_t now_bytes;
    uint64_t peak_bytes; /* more than now_bytes for `session` only */
    footprint_part parts[FOOTPRINT_MAX_PARTS];
} footprint_class;

typedef struct footprint_tokens {
    int64_t latent_layers;
    uint64_t row_bytes;     /* of a token in a layer */
    int64_t local_tokens;   /* of a request, on this rank */
    int64_t request_pages;  /* of a request, on this rank */
    uint64_t request_bytes; /* of a request in class kv, on this rank: pages and state */
    uint64_t needed_bytes;  /* the same of all requests */
    int64_t pool_pages;     /* on this rank */
    uint64_t pool_tokens;   /* that all ranks' pools hold together */
    double ideal_bytes;     /* of a token, on a rank: no page and no state */
    double effective_bytes; /* request_bytes over the request's tokens */
    uint64_t ideal_per_gib; /* tokens of context in a GiB on each rank */
    uint64_t effective_per_gib;
} footprint_tokens;

typedef struct footprint {
    int32_t concurrency;
    uint64_t fixed_pool_bytes; /* serving.kv_bytes; 0: the pool is as large as needed */
    int32_t step_rows;         /* query rows when every request verifies a draft */
    footprint_class classes[MLA_NUM_PURPOSES];
    uint64_t now_bytes; /* all classes */
    footprint_tokens tokens;
    weight_sizes weights;
} footprint;

/* MLA_ERR_ARGUMENT or MLA_ERR_UNSUPPORTED where libmla could not be prepared for it. */
mla_status footprint_of(const profile *self, int32_t concurrency, footprint *out,
                        mla_error *err);

/* The first class that finds too little left, in the order in which memory is taken: context,
 * comm, weights, drafter, session (its peak, which is given back), plan, kv, activations,
 * binding, graph, server, other. */
typedef struct footprint_verdict {
    bool fits;
    int32_t largest_concurrency; /* such that it and every smaller one fits; 0: none does */
    mla_purpose
        purpose; /* of this and what follows to deficit_bytes: where it does not fit */
    bool is_pool_fixed; /* the room is that of serving.kv_bytes */
    uint64_t required_bytes, available_bytes, deficit_bytes; /* of that class */
    /* Beside all other classes as they are at this concurrency. */
    uint64_t pool_room_bytes;
    int32_t
        largest_without_fixed; /* the largest concurrency with a pool as large as needed */
    uint64_t total_deficit_bytes; /* of all classes against the device; 0 where only a peak
                                     or a fixed pool is too small */
} footprint_verdict;

void footprint_judge(const profile *self, const footprint *print, footprint_verdict *out);

/* The same, and the largest concurrency. */
void footprint_admit(const profile *self, const footprint *print, footprint_verdict *out);

#endif
