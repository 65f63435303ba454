#include "attention/retain.h"

#ifdef MLA_RETAIN_PRIMING
static void push(mlai_operands **list, mlai_operands *item)
{
    item->next = *list;
    *list = item;
}

void mlai_retain(mla_context *context, mlai_operands *operands, mlai_operands **list)
{
    mlai_operands *item;
    if (!operands->block[0].data ||
        mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_CONTEXT, 1, sizeof *item,
                                "a retained operand", (void **)&item, NULL) != MLA_OK) {
        return;
    }
    *item = *operands;
    for (int i = 0; i < MLAI_NUM_OPERANDS; i++) {
        operands->block[i].data = NULL;
        operands->block[i].bytes = 0;
    }
    push(list, item);
}

void mlai_retain_move(mlai_operands **from, mlai_operands **to)
{
    while (*from) {
        mlai_operands *item = *from;
        *from = item->next;
        push(to, item);
    }
}

void mlai_retain_give(mla_context *context, mlai_operands **list)
{
    while (*list) {
        mlai_operands *item = *list;
        *list = item->next;
        mlai_operands_give(context, item);
        mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *item,
                         item);
    }
}
#endif
