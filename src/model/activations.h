/* activations.h - how large the arrays are that a forward pass writes, as pure arithmetic. */
#ifndef MLA_MODEL_ACTIVATIONS_H
#define MLA_MODEL_ACTIVATIONS_H

#include "model/carve.h"
#include "model/state.h"

/* What the sizes follow from, beside the config. */
typedef struct activation_limits {
    int32_t max_rows, num_threads;
    const mla_requirements *needs; /* of the plan that decodes */
} activation_limits;

/* Lays all of them out in block (see carve.h). */
void activations_lay_out(const model_config *config, const activation_limits *limits,
                         carve *block, activations *act);

#endif
