/* bench_shapes.h - the shapes that the CUDA kernels are timed with. Their names say them: heads,
 * query rows a request, requests, tokens a request; Lmix: lengths from 512 to 65536; w: pages
 * drawn from a pool of many. */
#ifndef MLA_CLI_BENCH_SHAPES_H
#define MLA_CLI_BENCH_SHAPES_H

#include <stdbool.h>

#include "mla/mla.h"

enum { BENCH_NUM_SHAPES = 42, BENCH_PAGE_TOKENS = 64, BENCH_MAX_REQUESTS = 128 };

typedef struct bench_shape {
    const char *name;
    int32_t heads, rows, requests;
    int32_t length;    /* of each request; 0: they are mixed */
    int64_t num_pages; /* of the pool; 0: no more than are read */
} bench_shape;

extern const bench_shape bench_shapes[BENCH_NUM_SHAPES];

int32_t bench_shape_length(const bench_shape *shape, int32_t request);
int64_t bench_shape_pages(const bench_shape *shape); /* of all requests */

/* num_pages is left 0. Queries are e4m3 for fp8 KV, else bf16; the output is bf16. */
mla_caps bench_shape_caps(const bench_shape *shape, mla_kv_format format);

#endif
