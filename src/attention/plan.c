/* plan.c - counting users of a plan, and what it says of itself: see plan.h. */
#include "attention/plan.h"

#include "base/sized.h"

mla_status mlai_plan_new(mla_context *context, const mlai_geometry *geometry,
                         size_t workspace_bytes, mla_plan **out, mla_error *err)
{
    mla_plan *plan;
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_PLAN, 1, sizeof *plan,
                                     "a plan", (void **)&plan, err));
    plan->context = context;
    plan->geometry = *geometry;
    plan->workspace_bytes = workspace_bytes;
    atomic_init(&plan->num_users, 1);
    atomic_fetch_add(&context->num_children, 1);
    *out = plan;
    return MLA_OK;
}

mla_plan *mla_plan_retain(mla_plan *plan)
{
    if (plan) {
        atomic_fetch_add_explicit(&plan->num_users, 1, memory_order_relaxed);
    }
    return plan;
}

void mla_plan_release(mla_plan **plan_in)
{
    if (!plan_in || !*plan_in) {
        return;
    }
    mla_plan *plan = *plan_in;
    *plan_in = NULL;
    if (atomic_fetch_sub_explicit(&plan->num_users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    mla_context *context = plan->context;
    if (plan->launcher) {
        context->ops->unload(context, plan->launcher);
    }
#ifdef MLA_RETAIN_PRIMING
    mlai_operands_give(context, &plan->kept);
#endif
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_PLAN, sizeof *plan, plan);
    atomic_fetch_sub(&context->num_children, 1);
}

mla_status mla_plan_requirements(const mla_plan *plan, mla_requirements *out,
                                 mla_error *err)
{
    mla_requirements full;
    MLAI_CHECK(plan, MLA_ERR_ARGUMENT, "plan is NULL");
    MLAI_TRY(MLAI_SIZED_CHECK_OUT(mla_requirements, out));
    mla_space space = plan->context->ops->space;
    mlai_geometry_requirements(&plan->geometry, space, &full);
    full.workspace = (mla_need){plan->workspace_bytes, MLAI_WORKSPACE_ALIGN_BYTES, space};
    MLAI_SIZED_FILL(mla_requirements, out, &full);
    return MLA_OK;
}

size_t mlai_describe(const mla_context *context, const mla_caps *caps, char *text,
                     size_t text_bytes)
{
    return mlai_plan_line_format(context->ops->name(context), caps, text, text_bytes);
}

void mla_plan_describe(const mla_plan *plan, char *text, size_t text_bytes,
                       size_t *needed_bytes)
{
    size_t room = text ? text_bytes : 0;
    size_t needed = 1;
    if (plan) {
        needed = mlai_describe(plan->context, &plan->geometry.caps, text, room);
    } else if (room > 0) {
        *text = '\0';
    }
    if (needed_bytes) {
        *needed_bytes = needed;
    }
}
