/* append.c - what mla_append demands of its arguments; the writing is the backend's. */
#include "attention/plan.h"

#include "base/size.h"
#include "base/sized.h"

static mla_status check_in(const char *name, mla_in in, size_t need, size_t align_bytes,
                           mla_error *err)
{
    MLAI_CHECK(in.data || need == 0, MLA_ERR_ARGUMENT, "%s is NULL, and needs %zu bytes",
               name, need);
    MLAI_CHECK(in.bytes >= need, MLA_ERR_BUFFER_SMALL, "%s has %zu bytes, and needs %zu",
               name, in.bytes, need);
    MLAI_CHECK((uintptr_t)in.data % align_bytes == 0, MLA_ERR_ARGUMENT,
               "%s lies at %p, not at a multiple of %zu bytes", name, in.data, align_bytes);
    return MLA_OK;
}

static mla_status check_rows(const mlai_geometry *geometry, const mla_append_args *args,
                             mla_error *err)
{
    size_t width = (size_t)geometry->caps.latent_dim + (size_t)geometry->caps.rope_dim;
    size_t item_bytes = mlai_dtype_bytes(args->rows_dtype);
    size_t need;
    MLAI_CHECK(args->rows_dtype == MLA_F32 || args->rows_dtype == MLA_BF16,
               MLA_ERR_ARGUMENT, "rows_dtype is %d, and rows are f32 or bf16",
               (int)args->rows_dtype);
    MLAI_CHECK(args->num_rows >= 0 &&
                   mlai_size_mul((size_t)args->num_rows, width * item_bytes, &need) &&
                   mlai_size_mul((size_t)args->num_rows, sizeof(int64_t), &need),
               MLA_ERR_ARGUMENT, "num_rows is %lld, and memory cannot hold that",
               (long long)args->num_rows);
    size_t num_rows = (size_t)args->num_rows;
    MLAI_TRY(check_in("rows", args->rows, num_rows * width * item_bytes, item_bytes, err));
    return check_in("slots", args->slots, num_rows * sizeof(int64_t), sizeof(int64_t), err);
}

static mla_status check_pool(const mlai_geometry *geometry, const mla_append_args *args,
                             mla_error *err)
{
    enum { VECTOR = 16 };
    size_t need = (size_t)geometry->caps.num_pages * geometry->page_stride_bytes;
    bool has_scale = geometry->caps.kv_format == MLA_KV_FP8;
    MLAI_TRY(check_in("kv_pool", (mla_in){args->kv_pool.data, args->kv_pool.bytes}, need,
                      VECTOR, err));
    MLAI_CHECK(has_scale || (!args->kv_scale.data && args->kv_scale.bytes == 0),
               MLA_ERR_ARGUMENT, "kv_scale has %zu bytes, and only fp8 has such a scale",
               args->kv_scale.bytes);
    return has_scale
               ? check_in("kv_scale", args->kv_scale, sizeof(float), sizeof(float), err)
               : MLA_OK;
}

/* A row is encoded from where it lies. */
static mla_status check_apart(const char *name, mla_in in, mla_out pool, mla_error *err)
{
    uintptr_t begin = (uintptr_t)in.data;
    uintptr_t pool_begin = (uintptr_t)pool.data;
    MLAI_CHECK(in.bytes <= UINTPTR_MAX - begin && pool.bytes <= UINTPTR_MAX - pool_begin,
               MLA_ERR_ARGUMENT,
               "%s has %zu bytes and kv_pool %zu, more than memory reaches", name, in.bytes,
               pool.bytes);
    MLAI_CHECK(begin + in.bytes <= pool_begin || pool_begin + pool.bytes <= begin,
               MLA_ERR_ARGUMENT, "%s (%zu bytes at %p) overlaps kv_pool (%zu bytes at %p)",
               name, in.bytes, in.data, pool.bytes, pool.data);
    return MLA_OK;
}

static mla_status check_overlap(const mla_append_args *args, mla_error *err)
{
    MLAI_TRY(check_apart("rows", args->rows, args->kv_pool, err));
    MLAI_TRY(check_apart("slots", args->slots, args->kv_pool, err));
    return check_apart("kv_scale", args->kv_scale, args->kv_pool, err);
}

mla_status mla_append(const mla_plan *plan, const mla_append_args *args, mla_stream stream,
                      mla_error *err)
{
    mla_append_args full;
    MLAI_CHECK(plan, MLA_ERR_ARGUMENT, "plan is NULL");
    MLAI_TRY(MLAI_SIZED_READ(mla_append_args, rows_dtype, args, &full));
    MLAI_CHECK(full.reserved == 0, MLA_ERR_ARGUMENT, "reserved is %d, not 0",
               full.reserved);
    MLAI_TRY(check_rows(&plan->geometry, &full, err));
    MLAI_TRY(check_pool(&plan->geometry, &full, err));
    MLAI_TRY(check_overlap(&full, err));
    return plan->context->ops->append(plan->context, &plan->geometry, plan->launcher, &full,
                                      stream, err);
}
