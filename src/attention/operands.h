/* operands.h - the temporary arrays on which a plan is primed: the smallest batch that makes
 * its kernel work, a workspace of full size, and one page of KV. They are class `session`
 * and die before the plan is published. */
#ifndef MLA_ATTENTION_OPERANDS_H
#define MLA_ATTENTION_OPERANDS_H

#include "attention/context.h"

enum { MLAI_NUM_OPERANDS = 10 };

typedef struct mlai_operands {
    mlai_geometry geometry; /* the plan's, with the capacities of the priming batch */
    mla_buffers buffers;
    mla_batch batch;
    struct {
        void *data; /* owned */
        size_t bytes;
    } block[MLAI_NUM_OPERANDS];
} mlai_operands;

/* Exactly what mlai_operands_take takes in the backend's space; UINT64_MAX where that cannot
 * be counted. */
uint64_t mlai_operands_bytes(const mlai_geometry *geometry, size_t workspace_bytes);

/* operands: written even on failure, when it holds what was taken so far: give it back. */
mla_status mlai_operands_take(mla_context *context, const mlai_geometry *geometry,
                              size_t workspace_bytes, mlai_operands *operands,
                              mla_error *err);
mla_status mlai_operands_fill(mla_context *context, mlai_operands *operands,
                              mla_error *err);
void mlai_operands_give(mla_context *context, mlai_operands *operands);

#endif
