/* lane.c - loans by a generation counter: see lane.h. */
#include "attention/lane.h"

enum { ALIGN_BYTES = 256 };

mlai_lane mlai_lane_open(mla_context *context, mla_purpose purpose)
{
    return (mlai_lane){.context = context, .purpose = purpose};
}

static void give(mlai_lane *lane)
{
    mla_context *context = lane->context;
    (void)context->ops->synchronise(context, NULL); /* a dead device runs nothing */
    mlai_ledger_give(&context->ledger, context->ops->space, lane->purpose, lane->bytes,
                     lane->data);
    lane->data = NULL;
    lane->bytes = 0;
}

void mlai_lane_close(mlai_lane *lane)
{
    if (lane->data) {
        give(lane);
    }
}

/* Odd from even, which only one of several threads can do. */
static mla_status seize(mlai_lane *lane, uint64_t *generation, mla_error *err)
{
    uint64_t now = atomic_load(&lane->generation);
    bool is_mine =
        now % 2 == 0 && atomic_compare_exchange_strong(&lane->generation, &now, now + 1);
    MLAI_CHECK(is_mine, MLA_ERR_STATE,
               "the lane's workspace of %zu bytes is lent already (loan %llu)", lane->bytes,
               (unsigned long long)now);
    *generation = now + 1;
    return MLA_OK;
}

static mla_status grow(mlai_lane *lane, size_t bytes, mla_error *err)
{
    mla_context *context = lane->context;
    MLAI_CHECK(!lane->is_fixed, MLA_ERR_STATE,
               "the lane's workspace has %zu bytes and would need %zu, and graphs may hold "
               "its address",
               lane->bytes, bytes);
    MLAI_CHECK(
        !mlai_context_is_frozen(context), MLA_ERR_FROZEN,
        "the context is frozen, and the lane's workspace of %zu bytes would need %zu",
        lane->bytes, bytes);
    if (lane->data) {
        give(lane);
    }
    MLAI_TRY(mlai_ledger_take(&context->ledger, context->ops->space, lane->purpose, bytes,
                              ALIGN_BYTES, "a lane's workspace", &lane->data, err));
    lane->bytes = bytes;
    return MLA_OK;
}

mla_status mlai_lane_reserve(mlai_lane *lane, size_t bytes, mla_error *err)
{
    uint64_t generation = 0;
    MLAI_TRY(seize(lane, &generation, err));
    mla_status status = bytes > lane->bytes ? grow(lane, bytes, err) : MLA_OK;
    atomic_store(&lane->generation, generation + 1);
    return status;
}

void mlai_lane_fix(mlai_lane *lane)
{
    lane->is_fixed = true;
}

mla_status mlai_lane_borrow(mlai_lane *lane, size_t bytes, mlai_loan *out, mla_error *err)
{
    uint64_t generation = 0;
    MLAI_TRY(seize(lane, &generation, err));
    if (bytes > lane->bytes) {
        atomic_store(&lane->generation, generation + 1);
        return MLAI_FAIL(MLA_ERR_BUFFER_SMALL,
                         "the lane's workspace has %zu bytes, and %zu are asked for",
                         lane->bytes, bytes);
    }
    *out = (mlai_loan){{lane->data, lane->bytes}, generation};
    return MLA_OK;
}

mla_status mlai_lane_give_back(mlai_lane *lane, const mlai_loan *loan, mla_error *err)
{
    uint64_t now = loan->generation;
    MLAI_CHECK(
        atomic_compare_exchange_strong(&lane->generation, &now, loan->generation + 1),
        MLA_ERR_STATE, "loan %llu was given back before, and loan %llu is the last",
        (unsigned long long)loan->generation, (unsigned long long)now);
    return MLA_OK;
}
