/* bench_pool.h - a KV pool on a CUDA device that is as large as one likes: a block of random
 * pages, over and over. The block stays on the host, too, for those who want to know what a
 * page holds. */
#ifndef MLA_CLI_BENCH_POOL_H
#define MLA_CLI_BENCH_POOL_H

#include "cli/bench_device.h"
#include "cli/operand.h"

enum { BENCH_BLOCK_PAGES = 1024 };

typedef struct bench_pool {
    mla_context *context;
    mla_kv_format kv_format;
    size_t page_bytes;
    int64_t num_pages;
    float kv_scale;
    operand
        block;    /* host: pages [0, BENCH_BLOCK_PAGES); page n holds what n % that holds */
    operand data; /* device */
} bench_pool;

/* caps: dimensions, page and format. At least num_pages pages. out: zeroed before; whatever
 * comes, bench_pool_close. */
mla_status bench_pool_open(const bench_device *device, const mla_caps *caps,
                           int64_t num_pages, bench_pool *out, mla_error *err);
void bench_pool_close(bench_pool *pool);

#endif
