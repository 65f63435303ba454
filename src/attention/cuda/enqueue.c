/* enqueue.c - puts a plan's kernels on a stream. Takes no memory of ours, waits for nothing;
 * what it asks is whether the stream is being captured, which captures allow. */
#include "attention/cuda/launcher.h"

static mlai_cu_function function_of(const mlai_launcher *launcher,
                                    mlai_cuda_program program)
{
    for (int32_t i = 0; i < launcher->num_programs; i++) {
        if (launcher->program[i].program == program) {
            return launcher->program[i].function;
        }
    }
    return NULL;
}

static mla_status start(mlai_cuda *cuda, mlai_cu_function function,
                        const mlai_cuda_grid *grid, void *parameters, mla_stream stream,
                        bool is_early, mla_error *err)
{
    static const mlai_cu_launch_attribute early = {.id = MLAI_CU_LAUNCH_EARLY,
                                                   .value = {1}};
    const mlai_cu_launch launch = {
        .grid = {grid->blocks, grid->blocks_y, 1},
        .block = {grid->threads, 1, 1},
        .shared_bytes = (unsigned)grid->shared_bytes,
        .stream = (mlai_cu_stream)stream.native,
        .attributes = &early,
        .num_attributes = is_early && cuda->major >= MLAI_CU_LAUNCH_EARLY_MAJOR ? 1 : 0,
    };
    void *list[] = {parameters};
    MLAI_CHECK(function, MLA_ERR_INTERNAL, "the plan has not loaded this kernel");
    return grid->blocks == 0
               ? MLA_OK
               : MLAI_CU(cuda, cuLaunchKernelEx(&launch, function, list, NULL));
}

mla_status mlai_cuda_launch_into(mlai_cuda_state *state, const mlai_launcher *launcher,
                                 const mlai_launch *launch, mla_error *err)
{
    const mlai_cuda_shape *shape = &launcher->shape;
    struct mlai_cuda_attend_params parameters =
        mlai_cuda_attend_params_of(shape, launch->geometry, launch->buffers, launch->batch);
    mlai_cuda_grid grid = mlai_cuda_attend_grid(shape, launch->geometry, launch->batch);
    MLAI_TRY(start(&state->cuda, function_of(launcher, shape->attend), &grid, &parameters,
                   launch->stream, false, err));
    mlai_programs_note(launch->launched, UINT64_C(1) << shape->attend);
    if (!shape->has_merge) {
        return MLA_OK;
    }
    grid = mlai_cuda_merge_grid(shape, launch->geometry, launch->batch);
    MLAI_TRY(start(&state->cuda, function_of(launcher, MLAI_CUDA_MERGE), &grid, &parameters,
                   launch->stream, true, err));
    mlai_programs_note(launch->launched, UINT64_C(1) << MLAI_CUDA_MERGE);
    return MLA_OK;
}

/* Called by the driver when the last graph with this capture is gone, on a thread of its own.
 * The context is touched last: once it counts no child it may go. */
static void end_capture_of(void *data)
{
    mlai_launcher *launcher = data;
    mla_context *context = launcher->context;
    atomic_fetch_sub(&launcher->num_captures, 1);
    atomic_fetch_sub(&context->num_children, 1);
}

/* From here on the graph keeps the launcher loaded, and the context alive. */
static mla_status tie_to_graph(mlai_cuda *cuda, mlai_launcher *launcher,
                               mlai_cu_graph graph, mla_error *err)
{
    mlai_cu_user_object object = NULL;
    atomic_fetch_add(&launcher->context->num_children, 1);
    atomic_fetch_add(&launcher->num_captures, 1);
    mla_status status = MLAI_CU(cuda, cuUserObjectCreate(&object, launcher, end_capture_of,
                                                         1, MLAI_CU_USER_OBJECT_NO_SYNC));
    if (status != MLA_OK) {
        end_capture_of(launcher);
        return status;
    }
    status = MLAI_CU(cuda, cuGraphRetainUserObject(graph, object, 1, MLAI_CU_GRAPH_MOVE));
    if (status != MLA_OK) {
        (void)cuda->driver->cuUserObjectRelease(object, 1); /* which ends it */
    }
    return status;
}

/* *is_captured: then the launcher is tied to the caller's graph. */
static mla_status look_for_capture(mlai_cuda *cuda, const mlai_launcher *launcher,
                                   mla_stream stream, bool *is_captured, mla_error *err)
{
    int status = 0;
    mlai_cu_graph graph = NULL;
    *is_captured = false;
    MLAI_TRY(MLAI_CU(cuda, cuStreamGetCaptureInfo((mlai_cu_stream)stream.native, &status,
                                                  NULL, &graph, NULL, NULL)));
    MLAI_CHECK(status != MLAI_CU_CAPTURE_INVALID, MLA_ERR_STATE,
               "the stream's capture has been invalidated");
    if (status == MLAI_CU_CAPTURE_ACTIVE) {
        *is_captured = true;
        /* What a capture counts is no constant of the plan. */
        return tie_to_graph(cuda, (mlai_launcher *)(uintptr_t)launcher, graph, err);
    }
    return MLA_OK;
}

static mla_status launch_entered(mlai_cuda_state *state, const mlai_launcher *launcher,
                                 const mlai_launch *launch, mla_error *err)
{
    bool is_captured;
    MLAI_TRY(look_for_capture(&state->cuda, launcher, launch->stream, &is_captured, err));
    MLAI_TRY(mlai_cuda_launch_into(state, launcher, launch, err));
    return is_captured || !launch->mark
               ? MLA_OK
               : MLAI_CU(&state->cuda,
                         cuEventRecord((mlai_cu_event)launch->mark,
                                       (mlai_cu_stream)launch->stream.native));
}

mla_status mlai_cuda_launch(mla_context *context, const mlai_launcher *launcher,
                            const mlai_launch *launch, mla_error *err)
{
    mlai_cuda_state *state = mlai_cuda_state_of(context);
    MLAI_TRY(mlai_cuda_enter(&state->cuda, err));
    mla_status status = launch_entered(state, launcher, launch, err);
    mlai_cuda_leave(&state->cuda);
    return status;
}

static mla_status append_entered(mlai_cuda *cuda, const mlai_geometry *geometry,
                                 const mlai_launcher *launcher, const mla_append_args *args,
                                 mla_stream stream, mla_error *err)
{
    bool is_captured;
    struct mlai_cuda_append_params parameters = mlai_cuda_append_params_of(geometry, args);
    mlai_cuda_grid grid = mlai_cuda_append_grid(args);
    MLAI_TRY(look_for_capture(cuda, launcher, stream, &is_captured, err));
    return start(cuda, function_of(launcher, launcher->shape.append), &grid, &parameters,
                 stream, false, err);
}

mla_status mlai_cuda_append(mla_context *context, const mlai_geometry *geometry,
                            const mlai_launcher *launcher, const mla_append_args *args,
                            mla_stream stream, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status = append_entered(cuda, geometry, launcher, args, stream, err);
    mlai_cuda_leave(cuda);
    return status;
}
