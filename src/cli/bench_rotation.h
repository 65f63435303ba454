/* bench_rotation.h - one shape on a CUDA device: a plan, and so many page tables over other
 * pages that what one replay read has left the caches when it is read again. Each table has
 * a binding and a graph of its own; everything else they share. */
#ifndef MLA_CLI_BENCH_ROTATION_H
#define MLA_CLI_BENCH_ROTATION_H

#include "cli/bench_batch.h"
#include "cli/bench_pool.h"
#include "cli/bench_shapes.h"

enum { BENCH_MAX_TURNS = 128 };

typedef struct bench_rotation {
    const bench_device *device;
    const bench_pool *pool;
    bench_batch batch; /* call.kv_pool: the pool's */
    int32_t num_turns;
    operand tables; /* [turns][B][T] int32 */
    mla_binding *binding[BENCH_MAX_TURNS];
    mlai_cu_graph_exec graph[BENCH_MAX_TURNS];
} bench_rotation;

/* Turns so that 600 MB are read before the first pages again, at most BENCH_MAX_TURNS. */
int32_t bench_rotation_turns(const bench_shape *shape, mla_kv_format format);
int64_t bench_rotation_pages(const bench_shape *shape, mla_kv_format format); /* of all */

/* plan: of caps, whose num_pages is what bench_rotation_pages says. out: zeroed before;
 * whatever comes, bench_rotation_close. */
mla_status bench_rotation_open(const bench_device *device, const bench_pool *pool,
                               const bench_shape *shape, mla_plan *plan,
                               const mla_caps *caps, bench_rotation *out, mla_error *err);
void bench_rotation_close(bench_rotation *rotation);

/* The median of many replays, after which the last one's output is held against the oracle on
 * a few rows and heads. */
mla_status bench_rotation_time(bench_rotation *rotation, double *us, mla_error *err);

#endif
