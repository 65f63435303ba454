/* schedule.h - what one run has to do, worked out from live lengths, as pure arithmetic.
 *
 * Rows of one request that share their split length form groups of at most
 * MLAI_TASK_QUERIES rows * heads. A group is either one task that folds its splits in order,
 * or, where it is heavier than half a worker's fair share and slots are left, one task a
 * split, folded in the same order afterwards: the bits do not depend on which. Where that
 * leaves workers idle, the heads are cut into blocks, each a task of its own: a head's bits
 * do not depend on the others' either, but every block loads the keys again. */
#ifndef MLA_ATTENTION_CPU_SCHEDULE_H
#define MLA_ATTENTION_CPU_SCHEDULE_H

#include "attention/cpu/kernels.h"
#include "attention/geometry.h"

enum { MLAI_MIN_BLOCK_HEADS = 4 /* below it, loading the keys is most of the work */ };

typedef struct mlai_group {
    int32_t request;
    int32_t first_row; /* of the batch */
    int32_t num_rows;
    int32_t request_row;    /* first_row, counted from the request's first */
    int32_t request_rows;   /* of the request */
    int32_t first_slot;     /* of its splits' partials; -1: folded in one task */
    int32_t split_tokens;   /* a power of two */
    int32_t num_splits;     /* 0 where its rows see nothing */
    int64_t first_split;    /* its splits are first_split .. + num_splits - 1 */
    int64_t length;         /* keys of the request */
    mlai_key_range visible; /* union over its rows */
} mlai_group;

typedef struct mlai_slot_task {
    int32_t group, split; /* split counts from the group's first */
} mlai_slot_task;

typedef struct mlai_schedule {
    mlai_group *group;    /* [max_groups] */
    mlai_slot_task *slot; /* [num_slots] */
    int32_t num_groups, num_slots_used;
    int32_t block_heads, num_head_blocks; /* of every group and slot */
} mlai_schedule;

/* Rows of a group at most. */
int32_t mlai_schedule_group_rows(const mla_caps *caps);

/* Slots that a run on num_threads can use at most: 0 with one thread. */
int32_t mlai_schedule_num_slots(const mla_caps *caps, int32_t num_threads);

typedef struct mlai_schedule_in {
    const mlai_geometry *geometry;
    const mla_batch *batch;
    const int32_t *context_lens; /* [num_requests] */
    const int32_t *query_starts; /* [num_requests + 1], checked */
    int32_t num_threads;
} mlai_schedule_in;

/* schedule: its arrays are the caller's, of at least num_query_rows groups and
 * mlai_schedule_num_slots slots. */
void mlai_schedule_build(const mlai_schedule_in *in, mlai_schedule *schedule);

#endif
