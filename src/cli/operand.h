/* operand.h - an array of an attention call: where the device has it, and where this program
 * writes or reads it. On a CPU both are the same memory. */
#ifndef MLA_CLI_OPERAND_H
#define MLA_CLI_OPERAND_H

#include "mla/mla.h"

typedef struct operand {
    void *data; /* for the library, in the space that the plan asks for */
    void *host; /* for this program; NULL where it has no need of one */
    size_t bytes;
    mla_space space;
    mla_purpose purpose;
} operand;

/* What is computed by a device and never looked at here wants no host side. */
typedef enum operand_side { OPERAND_DEVICE_ONLY, OPERAND_BOTH_SIDES } operand_side;

/* At least one byte. out: zeroed before; whatever comes, operand_give. */
mla_status operand_take(mla_context *context, const mla_need *need, mla_purpose purpose,
                        operand_side side, operand *out, mla_error *err);
void operand_give(mla_context *context, operand *taken);

/* A host side for one that has none. */
mla_status operand_mirror(mla_context *context, operand *taken, mla_error *err);

/* Host to device, and back; nothing where both are one. fetch waits for the null stream. */
mla_status operand_send(mla_context *context, const operand *from, mla_error *err);
mla_status operand_fetch(mla_context *context, const operand *from, mla_error *err);

/* As a buffer of mla_buffers; empty where nothing was taken. */
mla_in operand_in(const operand *from);
mla_out operand_out(const operand *from);

#endif
