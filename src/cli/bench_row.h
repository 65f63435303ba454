/* bench_row.h - a row of the report from the batch that is timed. */
#ifndef MLA_CLI_BENCH_ROW_H
#define MLA_CLI_BENCH_ROW_H

#include "cli/bench.h"
#include "cli/bench_batch.h"

/* name: static storage; NULL: what the mode is called. bytes: of the KV rows that are read,
 * each once. */
bench_row bench_row_of(const bench_batch *batch, const char *name);

#endif
