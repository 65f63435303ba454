/* operand.c - arrays with a host and a device side: see operand.h. */
#include "cli/operand.h"

#include "attention/context.h"
#include "base/status.h"

enum { ALIGN_BYTES = 64 };

mla_status operand_take(mla_context *context, const mla_need *need, mla_purpose purpose,
                        operand_side side, operand *out, mla_error *err)
{
    size_t bytes = need->bytes > 0 ? need->bytes : 1;
    size_t align = need->align_bytes > ALIGN_BYTES ? need->align_bytes : ALIGN_BYTES;
    *out = (operand){.bytes = bytes, .space = need->space, .purpose = purpose};
    MLAI_TRY(mla_memory_take(context, need->space, purpose, bytes, align, &out->data, err));
    if (need->space == MLA_SPACE_HOST) {
        out->host = out->data;
        return MLA_OK;
    }
    return side == OPERAND_DEVICE_ONLY ? MLA_OK : operand_mirror(context, out, err);
}

mla_status operand_mirror(mla_context *context, operand *taken, mla_error *err)
{
    return taken->host ? MLA_OK
                       : mla_memory_take(context, MLA_SPACE_HOST, taken->purpose,
                                         taken->bytes, ALIGN_BYTES, &taken->host, err);
}

void operand_give(mla_context *context, operand *taken)
{
    if (taken->host != taken->data) {
        mla_memory_give(context, MLA_SPACE_HOST, taken->purpose, taken->bytes, taken->host);
    }
    mla_memory_give(context, taken->space, taken->purpose, taken->bytes, taken->data);
    *taken = (operand){0};
}

mla_status operand_send(mla_context *context, const operand *from, mla_error *err)
{
    return from->host == from->data
               ? MLA_OK
               : context->ops->upload(context, from->data, from->host, from->bytes, err);
}

mla_status operand_fetch(mla_context *context, const operand *from, mla_error *err)
{
    return from->host == from->data
               ? MLA_OK
               : context->ops->download(context, from->host, from->data, from->bytes, err);
}

mla_in operand_in(const operand *from)
{
    return (mla_in){from->data, from->bytes};
}

mla_out operand_out(const operand *from)
{
    return (mla_out){from->data, from->bytes};
}
