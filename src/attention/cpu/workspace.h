/* workspace.h - where everything lies in a run's workspace, as pure arithmetic:
 *
 *   groups [max_query_rows] | slot tasks [S] | slots [S] | workers [num_threads]
 *
 * A slot is one split's partial: out [n][D] f32 and lse [n] f32, n = rows * heads of a group
 * at most. A worker has the group's result, one partial, the rows' key ranges and the
 * kernel's scratch. Each part begins at a multiple of 64 bytes. Nothing needs to be set
 * before a run. */
#ifndef MLA_ATTENTION_CPU_WORKSPACE_H
#define MLA_ATTENTION_CPU_WORKSPACE_H

#include "attention/cpu/schedule.h"

typedef struct mlai_cpu_layout {
    size_t groups, slot_tasks, slots, workers; /* offsets from the workspace */
    size_t slot_bytes, slot_lse;               /* lse: offset in a slot */
    size_t worker_bytes;
    size_t out, lse, part_out, part_lse, visible, scratch; /* offsets in a worker */
    size_t bytes;
} mlai_cpu_layout;

/* MLA_ERR_ARGUMENT where the workspace is more than memory can be. */
mla_status mlai_cpu_layout_of(const mlai_geometry *geometry,
                              const mlai_cpu_kernels *kernels, int32_t num_threads,
                              mlai_cpu_layout *out, mla_error *err);

#endif
