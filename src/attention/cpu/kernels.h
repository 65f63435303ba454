/* kernels.h - what an instruction set provides for attention on a CPU, in one table a level.
 *
 * The unit of work is a task: some query rows of ONE request, some heads, one split of the
 * keys. Rows and heads share every KV tile: a tile of MLAI_TILE_TOKENS keys is converted to
 * f32 once and used by all of them.
 *
 * Invariance: the bits of one (row, head) depend on that row's query, its visible keys and
 * the absolute positions of tiles and splits only: not on num_rows, num_heads, which other
 * rows share the task, page numbers or threads. Tiles begin at multiples of
 * MLAI_TILE_TOKENS from key 0 of the request (absolute), whatever the split. */
#ifndef MLA_ATTENTION_CPU_KERNELS_H
#define MLA_ATTENTION_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "attention/visibility.h"
#include "mla/mla.h"

enum {
    MLAI_TILE_TOKENS = 64,
    MLAI_TASK_QUERIES = 128, /* rows * heads of a task, unless one row alone has more */
};

/* The pool as a kernel sees it. Page id p, row t lies at pool + p * page_stride_bytes + t *
 * row_bytes (64-bit arithmetic). Only rows that are visible to some query row are read. */
typedef struct mlai_kv_view {
    const unsigned char *pool;
    int64_t num_pages; /* ids outside [0, num_pages) mask their tokens */
    int64_t page_stride_bytes;
    size_t row_bytes;
    int32_t page_tokens;
    int32_t latent_dim, rope_dim; /* D, R */
    mla_kv_format format;
    float scale; /* MLA_KV_FP8: value = e4m3 * scale; else 1 */
} mlai_kv_view;

typedef struct mlai_attend_task {
    const mlai_kv_view *kv;
    const int32_t *table; /* [T] page ids of the request; slots past the keys never read */
    mlai_key_range split; /* keys of this task; begin is a multiple of MLAI_TILE_TOKENS */
    const void *query;    /* [num_rows][num_heads][D+R] query_dtype */
    size_t query_row_stride; /* elements between rows of query */
    mla_dtype query_dtype;   /* f32, bf16 or e4m3 (value = e4m3 * query_scale) */
    float query_scale;       /* 1 unless e4m3 */
    float softmax_scale;
    int32_t num_rows, num_heads;
    const mlai_key_range
        *visible; /* [num_rows]; a row attends visible intersected with split */
    float *out;   /* [num_rows][num_heads][D] f32, normalised; 0 where no key is seen */
    size_t out_row_stride; /* elements between rows of out */
    float *lse; /* [num_rows][num_heads] natural log; -inf where no key is seen */
    size_t lse_row_stride;
    void *scratch; /* attend_scratch_bytes, 64-byte aligned; contents undefined before */
} mlai_attend_task;

typedef struct mlai_cpu_kernels {
    const char *name; /* "c", "avx2" */
    mla_isa isa;
    /* Bytes of scratch for any task with num_rows * num_heads <= num_queries. */
    size_t (*attend_scratch_bytes)(int32_t num_queries, int32_t latent_dim,
                                   int32_t rope_dim);
    void (*attend)(const mlai_attend_task *task);
    /* out, lse: [D] and one value, updated to the union of both parts, in place. Part weight 0
     * (lse -inf) is never read; two empty parts stay 0 and -inf. */
    void (*merge)(float *out, float *lse, const float *part, float part_lse,
                  int32_t latent_dim);
} mlai_cpu_kernels;

/* The best level of isa_mask, which has at least MLA_ISA_C; NULL otherwise. */
const mlai_cpu_kernels *mlai_cpu_kernels_best(uint32_t isa_mask);

extern const mlai_cpu_kernels mlai_cpu_kernels_c;
extern const mlai_cpu_kernels mlai_cpu_kernels_avx2; /* only call where the CPU has it */

#endif
