/* router.h - which experts a token goes to, and with what weights. */
#ifndef MLA_MODEL_ROUTER_H
#define MLA_MODEL_ROUTER_H

#include "model/config.h"
#include "model/weights.h"

typedef struct router_choices {
    int32_t *experts; /* [k], best first */
    float *weights;   /* [k] */
} router_choices;

/* Floats of scratch that router_choose wants. */
size_t router_scratch_floats(const model_config *config);

/* logits: [E]. bias: [E], data NULL: none. Equal scores go to the lower index. Groups that
 * are not kept count as -inf, so a kept expert with a negative biased score comes first. */
void router_choose(const model_config *config, const float *logits, const vector *bias,
                   float *scratch, router_choices out);

#endif
