/* launcher.h - the loaded programs of a plan. A run that a caller captures into a graph of its
 * own keeps its launcher loaded for as long as that graph lives: the graph owns a user object
 * of the driver's whose end is counted here. The driver allows no calls at that end, so what
 * became free is unloaded later, by reap. */
#ifndef MLA_ATTENTION_CUDA_LAUNCHER_H
#define MLA_ATTENTION_CUDA_LAUNCHER_H

#include "attention/cuda/artefact.h"

typedef struct mlai_cuda_loaded {
    mlai_cuda_program program;
    mlai_cu_module module;
    mlai_cu_function function;
    int64_t booked_bytes; /* device, class plan: the image's size */
} mlai_cuda_loaded;

struct mlai_launcher {
    mla_context *context;
    mlai_cuda_shape shape;
    int32_t num_programs;
    mlai_cuda_loaded program[MLAI_CUDA_PLAN_PROGRAMS];
    atomic_int num_captures; /* runs in callers' graphs */
    mlai_launcher *next;     /* of those that are kept */
};

mla_status mlai_cuda_load(mla_context *context, const mlai_geometry *geometry,
                          const mlai_artefact *artefact, mlai_launcher **out,
                          mla_error *err);
void mlai_cuda_unload(mla_context *context, mlai_launcher *launcher);
void mlai_cuda_reap(mla_context *context);

mla_status mlai_cuda_launch(mla_context *context, const mlai_launcher *launcher,
                            const mlai_launch *launch, mla_error *err);

/* The same into a capture of our own, whose graph ends before its plan: nothing is counted. */
mla_status mlai_cuda_launch_into(mlai_cuda_state *state, const mlai_launcher *launcher,
                                 const mlai_launch *launch, mla_error *err);

mla_status mlai_cuda_append(mla_context *context, const mlai_geometry *geometry,
                            const mlai_launcher *launcher, const mla_append_args *args,
                            mla_stream stream, mla_error *err);

#endif
