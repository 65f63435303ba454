/* memory.c - the ledger as a caller sees it: reports, and the caller's own memory in the
 * same books. */
#include "attention/context.h"
#include "base/size.h"
#include "base/sized.h"

mla_status mla_context_memory(const mla_context *context, mla_memory_report *report,
                              mla_error *err)
{
    mla_memory_report full = MLA_INIT(mla_memory_report);
    MLAI_CHECK(context, MLA_ERR_ARGUMENT, "context is NULL");
    MLAI_TRY(MLAI_SIZED_CHECK_OUT(mla_memory_report, report));
    mlai_ledger_report(&context->ledger, &full);
    MLAI_SIZED_FILL(mla_memory_report, report, &full);
    return MLA_OK;
}

static mla_status check_class(const mla_context *context, mla_space space,
                              mla_purpose purpose, mla_error *err)
{
    MLAI_CHECK(context, MLA_ERR_ARGUMENT, "context is NULL");
    MLAI_CHECK(space == MLA_SPACE_HOST || space == context->ops->space ||
                   (space == MLA_SPACE_PINNED && context->ops->space == MLA_SPACE_DEVICE),
               MLA_ERR_ARGUMENT, "space is %d, which this context has not", (int)space);
    MLAI_CHECK(purpose == MLA_FOR_CONTEXT ||
                   (purpose >= MLA_FOR_WEIGHTS && purpose < MLA_NUM_PURPOSES),
               MLA_ERR_ARGUMENT, "purpose is %d, which is not one for callers",
               (int)purpose);
    return MLA_OK;
}

mla_status mla_memory_take(mla_context *context, mla_space space, mla_purpose purpose,
                           size_t bytes, size_t align_bytes, void **out, mla_error *err)
{
    enum { MAX_ALIGN_BYTES = 4096 };
    MLAI_CHECK(out, MLA_ERR_ARGUMENT, "out is NULL");
    MLAI_TRY(check_class(context, space, purpose, err));
    MLAI_CHECK(bytes > 0 && bytes <= PTRDIFF_MAX, MLA_ERR_ARGUMENT,
               "bytes is %zu, not in 1 to %td", bytes, PTRDIFF_MAX);
    MLAI_CHECK(mlai_is_power_of_two(align_bytes) && align_bytes <= MAX_ALIGN_BYTES,
               MLA_ERR_ARGUMENT, "align_bytes is %zu, not a power of two up to %d",
               align_bytes, MAX_ALIGN_BYTES);
    return mlai_ledger_take(&context->ledger, space, purpose, bytes, align_bytes,
                            mla_purpose_name(purpose), out, err);
}

void mla_memory_give(mla_context *context, mla_space space, mla_purpose purpose,
                     size_t bytes, void *data)
{
    if (data && check_class(context, space, purpose, NULL) == MLA_OK) {
        mlai_ledger_give(&context->ledger, space, purpose, bytes, data);
    }
}

/* Takes bytes out of what callers booked if they are there: a class also holds what was
 * taken, and class context the library's own. */
static bool claim_booked(_Atomic uint64_t *booked, uint64_t bytes)
{
    uint64_t now = atomic_load(booked);
    do {
        if (bytes > now) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(booked, &now, now - bytes));
    return true;
}

mla_status mla_memory_book(mla_context *context, mla_space space, mla_purpose purpose,
                           int64_t bytes, mla_error *err)
{
    MLAI_TRY(check_class(context, space, purpose, err));
    _Atomic uint64_t *booked = &context->booked_bytes[space][purpose];
    MLAI_CHECK(bytes != 0 && bytes != INT64_MIN, MLA_ERR_ARGUMENT,
               "bytes is %lld, and only a change can be booked", (long long)bytes);
    MLAI_CHECK(bytes > 0 || claim_booked(booked, (uint64_t)-bytes), MLA_ERR_ARGUMENT,
               "bytes is %lld, and %llu are booked as %s: there is no more to strike out",
               (long long)bytes, (unsigned long long)atomic_load(booked),
               mla_purpose_name(purpose));
    MLAI_TRY(mlai_ledger_book(&context->ledger, space, purpose, bytes,
                              mla_purpose_name(purpose), err));
    if (bytes > 0) {
        atomic_fetch_add(booked, (uint64_t)bytes);
    }
    return MLA_OK;
}
