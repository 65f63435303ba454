/* device_state.h - what a context of the CUDA backend has from open to shut. */
#ifndef MLA_ATTENTION_CUDA_DEVICE_STATE_H
#define MLA_ATTENTION_CUDA_DEVICE_STATE_H

#include "attention/context.h"
#include "attention/cuda/programs.h"
#include "device/cuda/device.h"

typedef struct mlai_cuda_state {
    mlai_cuda cuda;
    mlai_cuda_device facts;
    mlai_cuda_architecture architecture;
    char name[24];           /* "cuda:sm90a" */
    pthread_mutex_t mutex;   /* of what follows */
    mlai_cu_stream recorder; /* where batches are recorded */
    mlai_launcher *kept;     /* unloaded by their plans, but in a caller's graph */
} mlai_cuda_state;

static inline mlai_cuda_state *mlai_cuda_state_of(const mla_context *context)
{
    return context->ops_state;
}

#endif
