/* retain.h - the defect that this library exists to avoid, on purpose: a build with
 * MLA_RETAIN_PRIMING keeps every priming operand as long as its plan or session lives. The
 * lifetime tests must fail in it; see docs/memory.md. */
#ifndef MLA_ATTENTION_RETAIN_H
#define MLA_ATTENTION_RETAIN_H

#include "attention/operands.h"

/* Moves what the operands hold to the front of a list. Without memory for the list item
 * nothing is kept. */
void mlai_retain(mla_context *context, mlai_operands *operands, mlai_operands **list);
void mlai_retain_move(mlai_operands **from, mlai_operands **to);
void mlai_retain_give(mla_context *context, mlai_operands **list);

#endif
