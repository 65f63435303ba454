/* backend.c - CUDA as a backend: opening a device, its memory, waiting for it, and the table.
 * Programs are compiled in compile.c, loaded in launcher.c, run in enqueue.c and graph.c. */
#include "attention/backend.h"

#include <stdio.h>
#include <string.h>

#include "attention/cuda/graph.h"

static const char *cuda_name(const mla_context *context)
{
    return mlai_cuda_state_of(context)->name;
}

static void name_device(mlai_cuda_state *state)
{
    const mlai_cuda *cuda = &state->cuda;
    const char *architecture;
    state->facts = (mlai_cuda_device){.major = cuda->major,
                                      .minor = cuda->minor,
                                      .num_units = cuda->num_units,
                                      .shared_unit_bytes = cuda->shared_unit_bytes,
                                      .shared_block_bytes = cuda->shared_block_bytes};
    state->architecture = mlai_cuda_architecture_of(&state->facts);
    architecture = state->architecture.text;
    (void)snprintf(state->name, sizeof state->name, "cuda:sm%s",
                   strncmp(architecture, "sm_", 3) == 0 ? architecture + 3 : architecture);
}

static mla_status make_recorder(mlai_cuda_state *state, mla_error *err)
{
    mlai_cuda *cuda = &state->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status =
        MLAI_CU(cuda, cuStreamCreate(&state->recorder, MLAI_CU_STREAM_NON_BLOCKING));
    mlai_cuda_leave(cuda);
    return status;
}

static void give_state(mla_context *context, mlai_cuda_state *state)
{
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *state,
                     state);
    context->ops_state = NULL;
}

static mla_status open_state(const mla_context *context, mlai_cuda_state *state,
                             mla_error *err)
{
    MLAI_CHECK(context->isa_mask == 0 || (context->isa_mask & MLA_ISA_SM80) != 0,
               MLA_ERR_UNSUPPORTED,
               "isa_mask 0x%x names no kernels that a CUDA device has here",
               context->isa_mask);
    MLAI_TRY(mlai_cuda_open(context->device, &state->cuda, err));
    mla_status status = make_recorder(state, err);
    if (status != MLA_OK) {
        mlai_cuda_shut(&state->cuda);
    }
    return status;
}

static mla_status cuda_open(mla_context *context, mla_error *err)
{
    mlai_cuda_state *state;
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_CONTEXT, 1, sizeof *state,
                                     "a CUDA device", (void **)&state, err));
    mla_status status = open_state(context, state, err);
    if (status != MLA_OK) {
        give_state(context, state);
        return status;
    }
    pthread_mutex_init(&state->mutex, NULL);
    name_device(state);
    mlai_ledger_source device = mlai_cuda_device_memory(&state->cuda);
    mlai_ledger_source pinned = mlai_cuda_pinned_memory(&state->cuda);
    mlai_ledger_set_source(&context->ledger, MLA_SPACE_DEVICE, &device);
    mlai_ledger_set_source(&context->ledger, MLA_SPACE_PINNED, &pinned);
    context->ops_state = state;
    return MLA_OK;
}

static void cuda_shut(mla_context *context)
{
    mlai_cuda_state *state = mlai_cuda_state_of(context);
    const mlai_cuda *cuda = &state->cuda;
    if (mlai_cuda_enter_to_free(cuda)) {
        (void)cuda->driver->cuStreamDestroy(state->recorder);
        mlai_cuda_leave(cuda);
    }
    mlai_cuda_shut(&state->cuda);
    pthread_mutex_destroy(&state->mutex);
    give_state(context, state);
}

static mla_status cuda_choose(const mla_context *context, const mlai_geometry *geometry,
                              size_t *workspace_bytes, mla_error *err)
{
    const mlai_cuda_state *state = mlai_cuda_state_of(context);
    mlai_cuda_shape shape;
    MLAI_TRY(mlai_cuda_check_alive(&state->cuda, err));
    MLAI_TRY(mlai_cuda_shape_of(geometry, &state->facts, &shape, err));
    *workspace_bytes = shape.workspace_bytes;
    return MLA_OK;
}

/* How large an image is shows when it has been compiled: of each there may be one in the
 * artefact and one on its way. */
static mlai_footprint cuda_footprint(const mla_context *context,
                                     const mlai_geometry *geometry)
{
    (void)context;
    (void)geometry;
    return (mlai_footprint){
        .artefact_bytes =
            sizeof(mlai_artefact) +
            (size_t)MLAI_CUDA_PLAN_PROGRAMS * 2 * MLAI_IMAGE_MAX_BYTES +
            MLAI_CUDA_PLAN_PROGRAMS *
                (sizeof(mlai_compilation) + (MLAI_CUDA_NUM_OPTIONS + 1) * sizeof(char *)),
        .launcher_bytes = sizeof(mlai_launcher),
        .module_bytes = (size_t)MLAI_CUDA_PLAN_PROGRAMS * MLAI_IMAGE_MAX_BYTES};
}

static uint64_t cuda_declared(const mlai_launcher *launcher)
{
    return mlai_cuda_declared(&launcher->shape);
}

static mla_status cuda_upload(mla_context *context, void *to, const void *from,
                              size_t bytes, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status = MLAI_CU(cuda, cuMemcpyHtoD((uintptr_t)to, from, bytes));
    mlai_cuda_leave(cuda);
    return status;
}

static mla_status cuda_download(mla_context *context, void *to, const void *from,
                                size_t bytes, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status = MLAI_CU(cuda, cuMemcpyDtoH(to, (uintptr_t)from, bytes));
    mlai_cuda_leave(cuda);
    return status;
}

static mla_status cuda_clear(mla_context *context, void *to, size_t bytes, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status = MLAI_CU(cuda, cuMemsetD8((uintptr_t)to, 0, bytes));
    mlai_cuda_leave(cuda);
    return status;
}

static mla_status cuda_synchronise(mla_context *context, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status = MLAI_CU(cuda, cuCtxSynchronize());
    mlai_cuda_leave(cuda);
    return status;
}

/* A mark is an event of the driver's. */
static mla_status cuda_make_mark(mla_context *context, mlai_mark **out, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    mlai_cu_event event = NULL;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mla_status status = MLAI_CU(cuda, cuEventCreate(&event, MLAI_CU_EVENT_DISABLE_TIMING));
    mlai_cuda_leave(cuda);
    MLAI_TRY(status);
    *out = (mlai_mark *)event;
    return MLA_OK;
}

static void cuda_drop_mark(mla_context *context, mlai_mark *mark)
{
    const mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    if (mlai_cuda_enter_to_free(cuda)) {
        (void)cuda->driver->cuEventDestroy((mlai_cu_event)mark);
        mlai_cuda_leave(cuda);
    }
}

static void cuda_wait(mla_context *context, mlai_mark *mark)
{
    const mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    if (mlai_cuda_enter_to_free(cuda)) {
        (void)cuda->driver->cuEventSynchronize((mlai_cu_event)mark);
        mlai_cuda_leave(cuda);
    }
}

static mla_status cuda_poll(mla_context *context, mlai_mark *mark, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    mlai_cu_result result = cuda->driver->cuEventQuery((mlai_cu_event)mark);
    mlai_cuda_leave(cuda);
    MLAI_CHECK(result != MLAI_CU_ERROR_NOT_READY, MLA_ERR_STATE,
               "the binding's last run is still in flight");
    return mlai_cuda_judge(cuda, result, "cuEventQuery", MLAI_HERE, err);
}

const mlai_backend mlai_cuda_backend = {
    .space = MLA_SPACE_DEVICE,
    .name = cuda_name,
    .open = cuda_open,
    .shut = cuda_shut,
    .choose = cuda_choose,
    .footprint = cuda_footprint,
    .declare = mlai_cuda_declare,
    .compile = mlai_cuda_compile,
    .discard = mlai_cuda_discard,
    .load = mlai_cuda_load,
    .unload = mlai_cuda_unload,
    .reap = mlai_cuda_reap,
    .declared = cuda_declared,
    .upload = cuda_upload,
    .download = cuda_download,
    .clear = cuda_clear,
    .launch = mlai_cuda_launch,
    .synchronise = cuda_synchronise,
    .make_mark = cuda_make_mark,
    .drop_mark = cuda_drop_mark,
    .wait = cuda_wait,
    .poll = cuda_poll,
    .record = mlai_cuda_record,
    .replay = mlai_cuda_replay,
    .drop_graph = mlai_cuda_drop_graph,
    .append = mlai_cuda_append,
};
