/* artefact.h - the programs of a plan between their declaration and their load: what to compile
 * and, once that has been done, the images. */
#ifndef MLA_ATTENTION_CUDA_ARTEFACT_H
#define MLA_ATTENTION_CUDA_ARTEFACT_H

#include "attention/cuda/device_state.h"
#include "device/cuda/kernel_cache.h"
#include "device/cuda/workers.h"

enum {
    MLAI_CUDA_PLAN_PROGRAMS = 3,                       /* attend, merge, append */
    MLAI_CUDA_NUM_OPTIONS = MLAI_CUDA_MAX_OPTIONS + 1, /* the architecture's, too */
};

typedef struct mlai_cuda_kernel {
    mlai_cuda_program program;
    mlai_cuda_options options;
    char architecture[48]; /* the option */
    mlai_kernel_id id;     /* once the compiler's version is known */
    void *image;           /* owned, class session; NULL until compiled */
    size_t image_bytes;
    bool was_compiled; /* and not found in the cache */
} mlai_cuda_kernel;

struct mlai_artefact {
    mlai_cuda_shape shape;
    int32_t num_kernels;
    mlai_cuda_kernel kernel[MLAI_CUDA_PLAN_PROGRAMS];
};

mla_status mlai_cuda_declare(mla_context *context, const mlai_geometry *geometry,
                             mlai_artefact **out, mla_error *err);
void mlai_cuda_discard(mla_context *context, mlai_artefact *artefact);

/* Every kernel of every artefact gets its image: from an equal one, from the cache on disk, or
 * from a compiler. */
mla_status mlai_cuda_compile(mla_context *context, const mlai_compile_job *job,
                             mla_error *err);

#endif
