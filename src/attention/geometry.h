/* geometry.h - what follows from caps alone: whether they are possible, and how large every
 * array is. Pure arithmetic, checked for overflow. */
#ifndef MLA_ATTENTION_GEOMETRY_H
#define MLA_ATTENTION_GEOMETRY_H

#include "base/status.h"

typedef struct mlai_geometry {
    mla_caps caps; /* checked, its defaults filled in, struct_size the full one */
    size_t row_bytes;
    size_t page_stride_bytes;
    size_t query_row_bytes;  /* [H][D+R] query_dtype */
    size_t output_row_bytes; /* [H][D] output_dtype */
    size_t lse_row_bytes;    /* [H] f32 */
    int64_t table_tokens;    /* T * P: the longest request that a table can name */
} mlai_geometry;

/* 0 where it is none. */
size_t mlai_dtype_bytes(mla_dtype dtype);

/* caps: full size (base/sized.h). MLA_ERR_ARGUMENT with the field and its value. */
mla_status mlai_geometry_of(const mla_caps *caps, mlai_geometry *out, mla_error *err);

/* Exact bytes of the caller's arrays but the workspace, which is the backend's to say. */
void mlai_geometry_requirements(const mlai_geometry *geometry, mla_space space,
                                mla_requirements *out);

#endif
