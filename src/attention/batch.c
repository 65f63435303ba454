/* batch.c - a batch against the caps of its plan: see batch.h. */
#include "attention/batch.h"

mla_status mlai_batch_check(const mlai_geometry *geometry, const mla_batch *batch,
                            mla_error *err)
{
    const mla_caps *caps = &geometry->caps;
    MLAI_CHECK(batch->num_requests >= 0 && batch->num_requests <= caps->max_requests,
               MLA_ERR_ARGUMENT, "num_requests is %d, and the plan serves 0 to %d",
               batch->num_requests, caps->max_requests);
    MLAI_CHECK(batch->num_query_rows >= 0 && batch->num_query_rows <= caps->max_query_rows,
               MLA_ERR_ARGUMENT, "num_query_rows is %d, and the plan serves 0 to %d",
               batch->num_query_rows, caps->max_query_rows);
    MLAI_CHECK(batch->max_context_tokens >= 0 &&
                   batch->max_context_tokens <= caps->max_context_tokens,
               MLA_ERR_ARGUMENT,
               "max_context_tokens is %lld, and the plan serves 0 to %lld",
               (long long)batch->max_context_tokens, (long long)caps->max_context_tokens);
    return MLA_OK;
}

mla_status mlai_batch_check_starts(const mlai_geometry *geometry, const mla_batch *batch,
                                   const int32_t *query_starts, mla_error *err)
{
    MLAI_CHECK(query_starts[0] == 0, MLA_ERR_ARGUMENT, "query_starts[0] is %d, not 0",
               query_starts[0]);
    for (int32_t r = 0; r < batch->num_requests; r++) {
        int64_t num_rows = (int64_t)query_starts[r + 1] - query_starts[r];
        MLAI_CHECK(num_rows >= 0 && num_rows <= geometry->caps.max_rows_per_request,
                   MLA_ERR_ARGUMENT,
                   "query_starts[%d] is %d after %d, and a request has 0 to %d rows", r + 1,
                   query_starts[r + 1], query_starts[r],
                   geometry->caps.max_rows_per_request);
    }
    MLAI_CHECK(query_starts[batch->num_requests] == batch->num_query_rows, MLA_ERR_ARGUMENT,
               "query_starts[%d] is %d, and num_query_rows is %d", batch->num_requests,
               query_starts[batch->num_requests], batch->num_query_rows);
    return MLA_OK;
}
