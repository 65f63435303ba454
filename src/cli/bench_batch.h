/* bench_batch.h - made-up numbers that fill a plan to its caps: all requests, query rows and
 * tokens that it promises to serve. */
#ifndef MLA_CLI_BENCH_BATCH_H
#define MLA_CLI_BENCH_BATCH_H

#include "cli/attention_call.h"
#include "device/pool.h"

typedef struct bench_batch {
    mla_caps caps;
    attention_call call; /* filled and bound */
    mla_batch batch;
    const float *kv_scale, *query_scale; /* NULL where the format has none */
    int32_t most_rows;                   /* query rows of one request at most */
    mlai_pool *pool;                     /* of the check; NULL: the context's */
    int64_t max_checked; /* rows and heads that check looks at; 0: its own choice */
} bench_batch;

/* out: zeroed before; whatever comes, bench_batch_free. */
mla_status bench_batch_open(mla_context *context, const mla_caps *caps, bench_batch *out,
                            mla_error *err);
void bench_batch_free(bench_batch *batch);

/* Compares what the last run left with the double oracle, on rows and heads spread over the
 * batch: all of them where that is little work. MLA_ERR_INTERNAL with the first value that
 * is further away than the bound of docs/numerics.md. */
mla_status bench_batch_check(const bench_batch *batch, mla_error *err);

#endif
