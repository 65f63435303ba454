/* retain.c - the defect on purpose: see retain.h. */
#include "attention/retain.h"

static int is_empty(const mlai_operands *operands)
{
    for (int i = 0; i < MLAI_NUM_OPERANDS; i++) {
        if (operands->block[i].data) {
            return 0;
        }
    }
    return 1;
}

void mlai_retain(mlai_operands *from, mlai_operands *to)
{
    if (is_empty(to)) {
        *to = *from;
        *from = (mlai_operands){.buffers = {.struct_size = 0}};
    }
}
