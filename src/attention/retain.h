/* retain.h - the defect that this library exists to avoid, on purpose: a build with
 * MLA_RETAIN_PRIMING keeps priming operands as long as their plan, or the session of a
 * failed job, lives. The lifetime tests must fail in it; see docs/memory.md. */
#ifndef MLA_ATTENTION_RETAIN_H
#define MLA_ATTENTION_RETAIN_H

#include "attention/operands.h"

/* Moves what `from` holds to `to`, unless `to` holds something. Takes no memory. */
void mlai_retain(mlai_operands *from, mlai_operands *to);

#endif
