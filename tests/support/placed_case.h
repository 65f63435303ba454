/* placed_case.h - an attend_case where a plan can be bound to it: its arrays themselves and
 * fenced outputs on the CPU, copies between red zones on a GPU (gpu.h). Outputs and workspace
 * are NaN and have exactly the bytes that the plan requires. */
#ifndef TEST_PLACED_CASE_H
#define TEST_PLACED_CASE_H

#include "support/attend_case.h"
#include "support/device_memory.h"

enum { PLACED_MEMBERS = 10 };

typedef struct placed_case {
    mla_buffers buffers; /* to bind */
    fenced out, lse, workspace;
    walled part[PLACED_MEMBERS]; /* on the GPU */
} placed_case;

placed_case placed_take(const attend_case *c, const mla_requirements *need);
void placed_fetch(placed_case *p);  /* waits; then `out` and `lse` are the last run's */
void placed_blank(placed_case *p);  /* outputs and workspace become NaN again */
size_t placed_drop(placed_case *p); /* returns how many bytes of red zones were written */

/* Against the oracle by the bound of where it ran, after placed_fetch. */
attend_verdict placed_judge(const placed_case *p, const attend_case *c);

#endif
