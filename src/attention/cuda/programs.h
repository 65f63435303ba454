/* programs.h - the CUDA programs: their table, their options, and how they are launched, as
 * pure functions of a plan's geometry and of a few numbers of the device. Nothing here calls
 * a driver.
 *
 * A program is text compiled for one geometry. Dimensions, KV format and tile are compiled
 * in; heads, page size, strides, dtypes of query and output are read at run time. A plan uses
 * one `attend`, the `merge` if it has more than one split, and the `append` of its format. */
#ifndef MLA_ATTENTION_CUDA_PROGRAMS_H
#define MLA_ATTENTION_CUDA_PROGRAMS_H

#include "attention/cuda/params.h"
#include <stdbool.h>
#include <stddef.h>

#include "attention/geometry.h"

typedef enum mlai_cuda_program {
    MLAI_CUDA_ATTEND_BF16_M16, /* tiles of 16 query rows (heads and rows of one request) */
    MLAI_CUDA_ATTEND_BF16_M32,
    MLAI_CUDA_ATTEND_BF16_M64,
    MLAI_CUDA_ATTEND_FP8_M16,
    MLAI_CUDA_ATTEND_FP8_M32,
    MLAI_CUDA_ATTEND_FP8_M64,
    MLAI_CUDA_ATTEND_G128_M16,
    MLAI_CUDA_ATTEND_G128_M32,
    MLAI_CUDA_MERGE,
    MLAI_CUDA_APPEND_BF16,
    MLAI_CUDA_APPEND_FP8,
    MLAI_CUDA_APPEND_G128,
    MLAI_CUDA_NUM_PROGRAMS, /* at most 40 */
} mlai_cuda_program;

typedef struct mlai_cuda_program_row {
    const char *name;   /* "attend_bf16_m16" */
    const char *entry;  /* its extern "C" function */
    const char *source; /* NUL-terminated text, headerless */
} mlai_cuda_program_row;

const mlai_cuda_program_row *mlai_cuda_program_of(mlai_cuda_program program);

/* What is asked of the device. */
typedef struct mlai_cuda_device {
    int32_t major, minor;      /* compute capability */
    int32_t num_units;         /* multiprocessors */
    size_t shared_unit_bytes;  /* shared memory of a multiprocessor */
    size_t shared_block_bytes; /* of a block, with opt-in */
} mlai_cuda_device;

/* "sm_80", "sm_90a": what NVRTC is asked for with --gpu-architecture. */
typedef struct mlai_cuda_architecture {
    char text[16];
} mlai_cuda_architecture;
mlai_cuda_architecture mlai_cuda_architecture_of(const mlai_cuda_device *device);

/* Constants of a plan. */
typedef struct mlai_cuda_shape {
    int32_t latent_dim, rope_dim;
    mla_kv_format kv_format;
    int32_t row_bytes;       /* of a KV row in memory */
    int32_t tile_rows;       /* 16, 32 or 64: packed (query row, head) pairs */
    int32_t num_threads;     /* of a block of attend */
    int32_t tile_tokens;     /* 16, 32 or 64 */
    int32_t num_stages;      /* tiles of tokens in shared memory */
    int32_t row_stride;      /* of a KV row in shared memory, bytes */
    int32_t num_dim_groups;  /* warps among which the columns of a score are divided */
    int32_t blocks_per_unit; /* resident at once */
    int32_t num_slots;       /* blocks resident on the device */
    size_t shared_bytes;     /* dynamic, of attend */
    struct mlai_cuda_split_rule split;
    mlai_cuda_program attend, append;
    bool has_merge;
    size_t partial_lse_offset; /* in the workspace; `partial` is at 0 */
    size_t workspace_bytes;    /* at least 1 */
} mlai_cuda_shape;

/* MLA_ERR_UNSUPPORTED with the reason: f32 KV, f32 queries (they are never rounded behind
 * the caller's back), D above 1024, an R that has no tile, too little shared memory. */
mla_status mlai_cuda_shape_of(const mlai_geometry *geometry, const mlai_cuda_device *device,
                              mlai_cuda_shape *out, mla_error *err);

/* Programs that a plan of this shape declares, as bits 1 << program. Append is among them. */
uint64_t mlai_cuda_declared(const mlai_cuda_shape *shape);

/* NVRTC options, but the architecture, that a program is compiled with. */
enum { MLAI_CUDA_MAX_OPTIONS = 16, MLAI_CUDA_OPTION_BYTES = 32 };
typedef struct mlai_cuda_options {
    int32_t num;
    char text[MLAI_CUDA_MAX_OPTIONS][MLAI_CUDA_OPTION_BYTES];
} mlai_cuda_options;
mlai_cuda_options mlai_cuda_options_of(const mlai_cuda_shape *shape,
                                       mlai_cuda_program program);

/* A kernel launch: one parameter, the struct of its program, by value. */
typedef struct mlai_cuda_grid {
    uint32_t blocks; /* 0: nothing to launch */
    uint32_t blocks_y;
    uint32_t threads;
    size_t shared_bytes; /* dynamic; above 48 KiB it has to be allowed once a function */
} mlai_cuda_grid;

/* The parameters of attend and of merge, which are the same. */
struct mlai_cuda_attend_params mlai_cuda_attend_params_of(const mlai_cuda_shape *shape,
                                                          const mlai_geometry *geometry,
                                                          const mla_buffers *buffers,
                                                          const mla_batch *batch);

/* Grids depend on the batch's numbers only, never on what lies in device memory. merge comes
 * after attend on the same stream, only if shape->has_merge; it may be launched with
 * programmatic stream serialisation (it waits for attend by itself); attend may not. */
mlai_cuda_grid mlai_cuda_attend_grid(const mlai_cuda_shape *shape,
                                     const mlai_geometry *geometry, const mla_batch *batch);
mlai_cuda_grid mlai_cuda_merge_grid(const mlai_cuda_shape *shape,
                                    const mlai_geometry *geometry, const mla_batch *batch);

struct mlai_cuda_append_params mlai_cuda_append_params_of(const mlai_geometry *geometry,
                                                          const mla_append_args *args);
mlai_cuda_grid mlai_cuda_append_grid(const mla_append_args *args);

#define MLAI_CUDA_AT(type, field, offset)                                                  \
    _Static_assert(offsetof(struct type, field) == (offset), "NVRTC sees another layout")
MLAI_CUDA_AT(mlai_cuda_attend_params, num_pages, 88);
MLAI_CUDA_AT(mlai_cuda_attend_params, split, 104);
MLAI_CUDA_AT(mlai_cuda_attend_params, softmax_scale, 128);
MLAI_CUDA_AT(mlai_cuda_attend_params, output_dtype, 164);
MLAI_CUDA_AT(mlai_cuda_append_params, num_rows, 32);
MLAI_CUDA_AT(mlai_cuda_append_params, page_tokens, 56);
_Static_assert(sizeof(struct mlai_cuda_attend_params) == 176, "NVRTC sees another layout");
_Static_assert(sizeof(struct mlai_cuda_append_params) == 64, "NVRTC sees another layout");

#endif
