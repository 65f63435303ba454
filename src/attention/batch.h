/* batch.h - whether a batch is one that the plan promised to serve. */
#ifndef MLA_ATTENTION_BATCH_H
#define MLA_ATTENTION_BATCH_H

#include "attention/geometry.h"

/* The numbers of the batch against the caps; touches no array. */
mla_status mlai_batch_check(const mlai_geometry *geometry, const mla_batch *batch,
                            mla_error *err);

/* What the host can read of it, on a backend whose arrays it can read. query_starts:
 * [num_requests + 1]. */
mla_status mlai_batch_check_starts(const mlai_geometry *geometry, const mla_batch *batch,
                                   const int32_t *query_starts, mla_error *err);

#endif
