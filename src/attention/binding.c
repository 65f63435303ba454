/* binding.c - bind, run, record, replay, poll, unbind. */
#include "attention/binding.h"

#include "attention/batch.h"
#include "base/sized.h"

static mla_status check_frozen(const mla_plan *plan, const char *what, mla_error *err)
{
    if (!mlai_context_is_frozen(plan->context)) {
        return MLA_OK;
    }
    char text[MLAI_PLAN_LINE_BYTES];
    mla_plan_describe(plan, text, sizeof text, NULL);
    return MLAI_FAIL(MLA_ERR_FROZEN, "the context is frozen, and there is no %s of [%s]",
                     what, text);
}

mla_status mla_bind(mla_plan *plan, const mla_buffers *buffers, mla_binding **out,
                    mla_error *err)
{
    mla_buffers full;
    mla_binding *binding;
    MLAI_CHECK(plan && out, MLA_ERR_ARGUMENT, "plan or out is NULL");
    MLAI_TRY(MLAI_SIZED_READ(mla_buffers, workspace, buffers, &full));
    MLAI_TRY(check_frozen(plan, "binding", err));
    MLAI_TRY(mlai_buffers_check(plan, &full, err));
    mla_context *context = plan->context;
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_BINDING, 1, sizeof *binding,
                                     "a binding", (void **)&binding, err));
    mla_status status = context->ops->make_mark(context, &binding->mark, err);
    if (status != MLA_OK) {
        mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_BINDING, sizeof *binding,
                         binding);
        return status;
    }
    binding->plan = mla_plan_retain(plan);
    binding->buffers = full;
    atomic_fetch_add(&context->num_children, 1);
    *out = binding;
    return MLA_OK;
}

static void drop_graph(mla_binding *binding)
{
    mla_context *context = binding->plan->context;
    if (binding->graph) {
        context->ops->drop_graph(context, binding->graph);
        binding->graph = NULL;
    }
}

void mla_unbind(mla_binding **binding_in)
{
    if (!binding_in || !*binding_in) {
        return;
    }
    mla_binding *binding = *binding_in;
    mla_context *context = binding->plan->context;
    context->ops->wait(context, binding->mark);
    drop_graph(binding);
    context->ops->drop_mark(context, binding->mark);
    mla_plan_release(&binding->plan);
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_BINDING, sizeof *binding,
                     binding);
    atomic_fetch_sub(&context->num_children, 1);
    *binding_in = NULL;
}

static mla_status read_batch(const mla_binding *binding, const mla_batch *batch,
                             mla_batch *full, mla_error *err)
{
    MLAI_CHECK(binding, MLA_ERR_ARGUMENT, "binding is NULL");
    MLAI_TRY(MLAI_SIZED_READ(mla_batch, max_context_tokens, batch, full));
    return mlai_batch_check(&binding->plan->geometry, full, err);
}

mla_status mla_run(mla_binding *binding, const mla_batch *batch, mla_stream stream,
                   mla_error *err)
{
    mla_batch full;
    MLAI_TRY(read_batch(binding, batch, &full, err));
    const mla_plan *plan = binding->plan;
    mlai_launch launch = {.geometry = &plan->geometry,
                          .buffers = &binding->buffers,
                          .batch = &full,
                          .stream = stream,
                          .mark = binding->mark};
    return plan->context->ops->launch(plan->context, plan->launcher, &launch, err);
}

mla_status mla_record(mla_binding *binding, const mla_batch *batch, mla_error *err)
{
    mla_batch full;
    mlai_graph *graph;
    MLAI_TRY(read_batch(binding, batch, &full, err));
    const mla_plan *plan = binding->plan;
    MLAI_TRY(check_frozen(plan, "recorded batch", err));
    mlai_launch launch = {
        .geometry = &plan->geometry, .buffers = &binding->buffers, .batch = &full};
    MLAI_TRY(
        plan->context->ops->record(plan->context, plan->launcher, &launch, &graph, err));
    plan->context->ops->wait(plan->context, binding->mark); /* the old one may be running */
    drop_graph(binding);
    binding->graph = graph;
    return MLA_OK;
}

mla_status mla_replay(mla_binding *binding, mla_stream stream, mla_error *err)
{
    MLAI_CHECK(binding, MLA_ERR_ARGUMENT, "binding is NULL");
    MLAI_CHECK(binding->graph, MLA_ERR_STATE, "nothing was recorded on this binding");
    mla_context *context = binding->plan->context;
    return context->ops->replay(context, binding->graph, binding->mark, stream, err);
}

mla_status mla_poll(mla_binding *binding, mla_error *err)
{
    MLAI_CHECK(binding, MLA_ERR_ARGUMENT, "binding is NULL");
    mla_context *context = binding->plan->context;
    return context->ops->poll(context, binding->mark, err);
}
