/* rig.h - a plan with its buffers, driven through the public API only, on a CPU or a GPU. Keys
 * and queries follow from a request's seed and the position alone, so that one request can be
 * computed alone, among neighbours, in other pages or in other chunks and be compared to the bit.
 * Everything that must not be read holds NaN or nonsense; so do workspace and outputs. */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include <stdbool.h>

#include "mla/mla.h"
#include "support/random.h"

typedef struct rig_request {
    uint64_t seed;
    int32_t length;   /* as in context_lens; keys exist for [0, length) */
    int32_t num_rows; /* its last rows: row i is the query of position length - rows + i */
} rig_request;

typedef struct rig {
    mla_context *context;
    mla_plan *plan;
    mla_binding *binding; /* of `bound` */
    mla_caps caps;
    mla_requirements need;
    mla_buffers buffers; /* in host memory: what a test reads and writes */
    mla_buffers bound;   /* the same memory, or its copy on a GPU: rig_send, rig_fetch */
    mla_batch batch;     /* of the last rig_load */
    rng random;          /* for pages and nonsense */
} rig;

/* decode, f32 everywhere, 4 heads, 128+64, pages of 16, 4 requests, 4 rows, 1100 tokens. On a
 * GPU, which has no f32 for them, keys and queries are bf16. */
mla_caps rig_caps(void);

/* extend: so many requests and rows, lengths up to `tokens`; the rest as rig_caps. */
mla_caps rig_extend_caps(int32_t max_requests, int32_t max_rows, int32_t tokens);

/* Of rig_context: the CPU, or CUDA on the fake driver of fake_cuda.h, or CUDA on a real device
 * (gpu.h). */
extern mla_backend rig_backend;
extern bool rig_is_on_gpu;

mla_context *rig_context(int32_t num_threads, const mla_allocator *allocator);
mla_context *rig_context_of_isa(int32_t num_threads, uint32_t isa_mask);

/* A session of its own: add, prepare, publish, close. Fails the test on any error. */
mla_plan *rig_plan(mla_context *context, const mla_caps *caps);

/* Buffers of exactly the required bytes in host memory, filled with 0xff; rig_buffers_free. */
mla_buffers rig_buffers(const mla_requirements *need);
void rig_buffers_free(mla_buffers *buffers);

/* What a plan can be bound to: `buffers` themselves, or a copy of them on the GPU. */
mla_buffers rig_bound(const mla_buffers *buffers);
void rig_bound_free(mla_buffers *bound);

/* An array of a call that only reads it: itself, or its copy on the GPU. */
mla_in rig_lend(const void *data, size_t bytes);
void rig_lend_end(mla_in in);

/* context, plan, buffers, binding. */
rig rig_open(const mla_caps *caps, int32_t num_threads, uint64_t seed);
void rig_close(rig *r);

/* Sets lengths, starts, queries, and writes the keys into pages drawn anew. */
void rig_load(rig *r, const rig_request *request, int32_t num_requests);

void rig_run(rig *r); /* outputs and workspace are NaN before */
void rig_replay(rig *r);

/* What these do around the call: inputs to where they are bound, outputs and workspace NaN;
 * then waiting, and outputs from there. */
void rig_send(rig *r);
void rig_fetch(rig *r);
void rig_fetch_pool(rig *r); /* after a test's own mla_append */

/* Of the last run: row `row` of the batch. bytes: of one row. */
const void *rig_out(const rig *r, int32_t row);
const float *rig_lse(const rig *r, int32_t row);
size_t rig_out_bytes(const rig *r);

/* Whether two rows of two rigs with the same caps geometry hold the same bits. */
int rig_same_bits(const rig *a, int32_t a_row, const rig *b, int32_t b_row);

#endif
