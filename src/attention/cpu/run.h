/* run.h - one batch on the thread pool. */
#ifndef MLA_ATTENTION_CPU_RUN_H
#define MLA_ATTENTION_CPU_RUN_H

#include "attention/backend.h"
#include "attention/cpu/workspace.h"
#include "attention/programs.h"
#include "device/pool.h"

/* What the kernels of one level are called in a plan's set of programs. */
enum { MLAI_CPU_ATTEND = 1 << 0, MLAI_CPU_MERGE = 1 << 1 };

/* Reads lengths and starts, fills the schedule, runs it. MLA_ERR_ARGUMENT where the starts
 * are not what the plan serves; then nothing was written. */
mla_status mlai_cpu_run(mlai_pool *pool, const mlai_cpu_kernels *kernels,
                        const mlai_launch *launch, mlai_schedule *schedule, mla_error *err);

#endif
