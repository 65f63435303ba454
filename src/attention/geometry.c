/* geometry.c - caps, field by field, and the sizes that follow: see geometry.h. */
#include "attention/geometry.h"

#include <math.h>

#include "attention/row_layout.h"
#include "base/size.h"

enum { MAX_DIM = 1 << 16, MAX_HEADS = 1 << 16, LATENT_UNIT = 64, GROUP_UNIT = 128 };
enum { ROPE_UNIT = 16, PAGE_UNIT = 16, STRIDE_UNIT = 16 };

size_t mla_kv_row_bytes(mla_kv_format format, int32_t latent_dim, int32_t rope_dim)
{
    bool is_grouped = format == MLA_KV_FP8_G128;
    if (latent_dim < 0 || rope_dim < 0 || (is_grouped && latent_dim % GROUP_UNIT != 0)) {
        return 0;
    }
    size_t latent = (size_t)latent_dim;
    size_t rope = (size_t)rope_dim;
    switch (format) {
    case MLA_KV_F32:
        return sizeof(float) * (latent + rope);
    case MLA_KV_BF16:
        return sizeof(uint16_t) * (latent + rope);
    case MLA_KV_FP8:
        return latent + rope;
    case MLA_KV_FP8_G128:
        return latent + latent / GROUP_UNIT * sizeof(float) + sizeof(uint16_t) * rope;
    }
    return 0;
}

size_t mlai_dtype_bytes(mla_dtype dtype)
{
    switch (dtype) {
    case MLA_F32:
        return 4;
    case MLA_BF16:
        return 2;
    case MLA_E4M3:
        return 1;
    }
    return 0;
}

static mla_status check_formats(const mla_caps *caps, mla_error *err)
{
    MLAI_CHECK(caps->mode >= MLA_DECODE && caps->mode <= MLA_EXTEND, MLA_ERR_ARGUMENT,
               "mode is %d, which is not one of mla_mode", (int)caps->mode);
    MLAI_CHECK(mlai_kv_format_name(caps->kv_format), MLA_ERR_ARGUMENT,
               "kv_format is %d, which is not one of mla_kv_format", (int)caps->kv_format);
    MLAI_CHECK(mlai_dtype_bytes(caps->query_dtype) != 0, MLA_ERR_ARGUMENT,
               "query_dtype is %d, which is not one of mla_dtype", (int)caps->query_dtype);
    MLAI_CHECK(caps->output_dtype == MLA_F32 || caps->output_dtype == MLA_BF16,
               MLA_ERR_ARGUMENT, "output_dtype is %d, and an output is f32 or bf16",
               (int)caps->output_dtype);
    return MLA_OK;
}

static mla_status check_shape(const mla_caps *caps, mla_error *err)
{
    int32_t unit = caps->kv_format == MLA_KV_FP8_G128 ? GROUP_UNIT : LATENT_UNIT;
    MLAI_CHECK(caps->num_heads >= 1 && caps->num_heads <= MAX_HEADS, MLA_ERR_ARGUMENT,
               "num_heads is %d, not in 1 to %d", caps->num_heads, MAX_HEADS);
    MLAI_CHECK(caps->latent_dim > 0 && caps->latent_dim <= MAX_DIM &&
                   caps->latent_dim % unit == 0,
               MLA_ERR_ARGUMENT, "latent_dim is %d, not a multiple of %d in %d to %d",
               caps->latent_dim, unit, unit, MAX_DIM);
    MLAI_CHECK(caps->rope_dim >= 0 && caps->rope_dim <= MAX_DIM &&
                   caps->rope_dim % ROPE_UNIT == 0,
               MLA_ERR_ARGUMENT, "rope_dim is %d, not a multiple of %d in 0 to %d",
               caps->rope_dim, ROPE_UNIT, MAX_DIM);
    MLAI_CHECK(caps->page_tokens == 1 ||
                   (caps->page_tokens > 0 && caps->page_tokens % PAGE_UNIT == 0),
               MLA_ERR_ARGUMENT, "page_tokens is %d, neither 1 nor a multiple of %d",
               caps->page_tokens, PAGE_UNIT);
    return MLA_OK;
}

static mla_status check_mask(const mla_caps *caps, mla_error *err)
{
    MLAI_CHECK(caps->causal == 0 || caps->causal == 1, MLA_ERR_ARGUMENT,
               "causal is %d, neither 0 nor 1", caps->causal);
    MLAI_CHECK(caps->window >= 0, MLA_ERR_ARGUMENT,
               "window is %d, and a row cannot see fewer than 0 keys", caps->window);
    MLAI_CHECK(isfinite(caps->softmax_scale) && caps->softmax_scale > 0, MLA_ERR_ARGUMENT,
               "softmax_scale is %g, not a number above 0", (double)caps->softmax_scale);
    return MLA_OK;
}

static mla_status check_capacities(const mla_caps *caps, mla_error *err)
{
    MLAI_CHECK(caps->max_requests >= 1, MLA_ERR_ARGUMENT,
               "max_requests is %d, and a plan serves at least 1", caps->max_requests);
    MLAI_CHECK(caps->max_query_rows >= 1, MLA_ERR_ARGUMENT,
               "max_query_rows is %d, and a plan serves at least 1", caps->max_query_rows);
    int32_t most = caps->mode == MLA_DECODE ? 1 : caps->max_query_rows;
    MLAI_CHECK(caps->max_rows_per_request >= 1 && caps->max_rows_per_request <= most,
               MLA_ERR_ARGUMENT, "max_rows_per_request is %d, not in 1 to %d%s",
               caps->max_rows_per_request, most,
               caps->mode == MLA_DECODE ? " (mode is decode)" : " (max_query_rows)");
    MLAI_CHECK(caps->max_context_tokens >= 1 && caps->max_context_tokens <= INT32_MAX,
               MLA_ERR_ARGUMENT, "max_context_tokens is %lld, not in 1 to %d",
               (long long)caps->max_context_tokens, INT32_MAX);
    return MLA_OK;
}

static mla_status check_paging(const mla_caps *caps, mla_error *err)
{
    int64_t table_tokens = (int64_t)caps->table_width * caps->page_tokens;
    MLAI_CHECK(
        caps->table_width >= 1 && table_tokens >= caps->max_context_tokens,
        MLA_ERR_ARGUMENT,
        "table_width is %d: %lld tokens in pages of %d, and max_context_tokens is %lld",
        caps->table_width, (long long)table_tokens, caps->page_tokens,
        (long long)caps->max_context_tokens);
    MLAI_CHECK(caps->interleave >= 0 &&
                   (caps->interleave == 0 || caps->page_tokens % caps->interleave == 0),
               MLA_ERR_ARGUMENT, "interleave is %d, which does not divide page_tokens %d",
               caps->interleave, caps->page_tokens);
    MLAI_CHECK(caps->num_pages >= 1 && caps->num_pages <= INT32_MAX, MLA_ERR_ARGUMENT,
               "num_pages is %lld, not in 1 to %d", (long long)caps->num_pages, INT32_MAX);
    size_t page_bytes = (size_t)caps->page_tokens *
                        mla_kv_row_bytes(caps->kv_format, caps->latent_dim, caps->rope_dim);
    MLAI_CHECK(caps->page_stride_bytes == 0 ||
                   caps->page_stride_bytes == (int64_t)page_bytes ||
                   (caps->page_stride_bytes % STRIDE_UNIT == 0 &&
                    caps->page_stride_bytes >= (int64_t)page_bytes),
               MLA_ERR_ARGUMENT,
               "page_stride_bytes is %lld, not a multiple of %d that holds a page of %zu",
               (long long)caps->page_stride_bytes, STRIDE_UNIT, page_bytes);
    return MLA_OK;
}

static bool fits(size_t rows, size_t row_bytes)
{
    size_t bytes;
    return mlai_size_mul(rows, row_bytes, &bytes) && bytes <= PTRDIFF_MAX;
}

/* What is checked here may be multiplied without a check by whoever has the geometry. */
static mla_status check_sizes(const mlai_geometry *geometry, mla_error *err)
{
    const mla_caps *caps = &geometry->caps;
    MLAI_CHECK(fits((size_t)caps->num_pages, geometry->page_stride_bytes), MLA_ERR_ARGUMENT,
               "num_pages is %lld pages of %zu bytes, more than memory can be",
               (long long)caps->num_pages, geometry->page_stride_bytes);
    MLAI_CHECK(fits((size_t)caps->max_query_rows, geometry->query_row_bytes) &&
                   fits((size_t)caps->max_query_rows, geometry->output_row_bytes),
               MLA_ERR_ARGUMENT,
               "max_query_rows is %d rows of %zu bytes, more than memory can be",
               caps->max_query_rows, geometry->query_row_bytes);
    MLAI_CHECK(
        fits((size_t)caps->max_requests, (size_t)caps->table_width * sizeof(int32_t)),
        MLA_ERR_ARGUMENT, "max_requests is %d tables of %d pages, more than memory can be",
        caps->max_requests, caps->table_width);
    return MLA_OK;
}

mla_status mlai_geometry_of(const mla_caps *caps, mlai_geometry *out, mla_error *err)
{
    MLAI_TRY(check_formats(caps, err));
    MLAI_TRY(check_shape(caps, err));
    MLAI_TRY(check_mask(caps, err));
    MLAI_TRY(check_capacities(caps, err));
    MLAI_TRY(check_paging(caps, err));
    mlai_geometry geometry = {.caps = *caps};
    size_t heads = (size_t)caps->num_heads;
    size_t width = (size_t)caps->latent_dim + (size_t)caps->rope_dim;
    geometry.caps.struct_size = sizeof(mla_caps);
    geometry.caps.interleave = caps->interleave == 0 ? 1 : caps->interleave;
    geometry.row_bytes =
        mla_kv_row_bytes(caps->kv_format, caps->latent_dim, caps->rope_dim);
    geometry.page_stride_bytes = caps->page_stride_bytes != 0
                                     ? (size_t)caps->page_stride_bytes
                                     : (size_t)caps->page_tokens * geometry.row_bytes;
    geometry.caps.page_stride_bytes = (int64_t)geometry.page_stride_bytes;
    geometry.query_row_bytes = heads * width * mlai_dtype_bytes(caps->query_dtype);
    geometry.output_row_bytes =
        heads * (size_t)caps->latent_dim * mlai_dtype_bytes(caps->output_dtype);
    geometry.lse_row_bytes = heads * sizeof(float);
    geometry.table_tokens = (int64_t)caps->table_width * caps->page_tokens;
    MLAI_TRY(check_sizes(&geometry, err));
    *out = geometry;
    return MLA_OK;
}

void mlai_geometry_requirements(const mlai_geometry *geometry, mla_space space,
                                mla_requirements *out)
{
    const mla_caps *caps = &geometry->caps;
    size_t rows = (size_t)caps->max_query_rows;
    size_t requests = (size_t)caps->max_requests;
    enum { VECTOR = 16, WORD = 4 };
    *out = (mla_requirements){
        .struct_size = sizeof *out,
        .kv_pool = {(size_t)caps->num_pages * geometry->page_stride_bytes, VECTOR, space},
        .query = {rows * geometry->query_row_bytes, VECTOR, space},
        .output = {rows * geometry->output_row_bytes, VECTOR, space},
        .lse = {rows * geometry->lse_row_bytes, WORD, space},
        .block_table = {requests * (size_t)caps->table_width * WORD, WORD, space},
        .context_lens = {requests * WORD, WORD, space},
        .query_starts = {(requests + 1) * WORD, WORD, space},
    };
}
