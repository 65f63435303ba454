/* artefact.c - which programs a plan needs: see artefact.h. */
#include "attention/cuda/artefact.h"

#include <stdio.h>

static void add_kernel(const mlai_cuda_state *state, mlai_artefact *artefact,
                       mlai_cuda_program program)
{
    mlai_cuda_kernel *kernel = &artefact->kernel[artefact->num_kernels++];
    kernel->program = program;
    kernel->options = mlai_cuda_options_of(&artefact->shape, program);
    (void)snprintf(kernel->architecture, sizeof kernel->architecture,
                   "--gpu-architecture=%s", state->architecture.text);
}

mla_status mlai_cuda_declare(mla_context *context, const mlai_geometry *geometry,
                             mlai_artefact **out, mla_error *err)
{
    const mlai_cuda_state *state = mlai_cuda_state_of(context);
    mlai_cuda_shape shape;
    mlai_artefact *artefact;
    MLAI_TRY(mlai_cuda_check_alive(&state->cuda, err));
    MLAI_TRY(mlai_cuda_shape_of(geometry, &state->facts, &shape, err));
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_SESSION, 1, sizeof *artefact,
                                     "a choice of kernels", (void **)&artefact, err));
    artefact->shape = shape;
    add_kernel(state, artefact, shape.attend);
    if (shape.has_merge) {
        add_kernel(state, artefact, MLAI_CUDA_MERGE);
    }
    add_kernel(state, artefact, shape.append);
    *out = artefact;
    return MLA_OK;
}

void mlai_cuda_discard(mla_context *context, mlai_artefact *artefact)
{
    for (int32_t i = artefact->num_kernels - 1; i >= 0; i--) {
        mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_SESSION,
                         artefact->kernel[i].image_bytes, artefact->kernel[i].image);
    }
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_SESSION, sizeof *artefact,
                     artefact);
}
