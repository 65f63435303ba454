/* load.c - a directory becomes a model: config, then weights. */
#include "model/state.h"

mla_status model_load(mla_context *context, const char *dir, model **out, mla_error *err)
{
    mlai_ledger *ledger = mlai_context_ledger(context);
    const operators *ops = operators_best(context->isa_mask);
    void *block = NULL;
    mla_status status = MLA_OK;
    MLAI_CHECK(ops, MLA_ERR_UNSUPPORTED, "no operators for the instruction sets 0x%x",
               context->isa_mask);
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, 1, sizeof(model), "a model",
                                     &block, err));
    model *made = block;
    made->context = context;
    made->ops = ops;
    made->threads = mlai_context_pool(context);
    MLAI_TRY_OR(fail, model_config_read(ledger, dir, &made->config, err));
    MLAI_TRY_OR(fail, model_weights_open(context, dir, &made->config, &made->weights, err));
    *out = made;
    return MLA_OK;
fail:
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof(model), made);
    return status;
}

void model_unload(model **model_in)
{
    model *self = *model_in;
    if (!self) {
        return;
    }
    model_unprepare(self);
    model_weights_close(&self->weights);
    mlai_ledger_give(mlai_context_ledger(self->context), MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     sizeof *self, self);
    *model_in = NULL;
}

mla_status model_add_eos(model *self, int32_t id, mla_error *err)
{
    return model_config_add_eos(&self->config, id, err);
}

const model_config *model_config_of(const model *self)
{
    return &self->config;
}

mla_context *model_context_of(const model *self)
{
    return self->context;
}
