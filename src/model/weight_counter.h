/* weight_counter.h - adds up tensors, each in its format and cut among the ranks. */
#ifndef MLA_MODEL_WEIGHT_COUNTER_H
#define MLA_MODEL_WEIGHT_COUNTER_H

#include "model/weight_sizes.h"

typedef enum weight_part {
    PART_EMBEDDING,
    PART_ATTENTION,
    PART_MLP,
    PART_EXPERTS,
    PART_OTHERS,
    NUM_PARTS
} weight_part;

typedef struct weight_counter {
    const model_shape *shape;
    const weight_storage *storage;
    byte_sum bytes[NUM_PARTS]; /* of one rank */
    byte_sum parameters;       /* of all ranks */
} weight_counter;

typedef struct counted_tensor {
    const char *name; /* for errors */
    weight_part part;
    weight_split split;
    int32_t num_rows, num_columns; /* num_columns 1: a vector */
    int32_t num_copies;
    bool is_vector;     /* stored as norms are, whatever its shape */
    bool is_f32;        /* whatever the storage says */
    bool may_be_uneven; /* the last ranks may have less */
} counted_tensor;

/* Checks that the ranks divide the heads. */
mla_status weight_counter_begin(weight_counter *counter, const model_shape *shape,
                                const weight_storage *storage, mla_error *err);

/* An expert's tensor counts for all routed experts. */
mla_status weight_counter_add(weight_counter *counter, const counted_tensor *tensor,
                              mla_error *err);

/* All parts together. */
mla_status weight_counter_total(const weight_counter *counter, uint64_t *bytes,
                                mla_error *err);

#endif
