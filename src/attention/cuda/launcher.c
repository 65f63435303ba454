/* launcher.c - loading and unloading: see launcher.h. */
#include "attention/cuda/launcher.h"

enum { SHARED_WITHOUT_ASKING = 48 * 1024 };

static mla_status ready_function(mlai_cuda *cuda, const mlai_artefact *artefact,
                                 mlai_cuda_loaded *loaded, mla_error *err)
{
    const mlai_cuda_program_row *row = mlai_cuda_program_of(loaded->program);
    const size_t shared_bytes = artefact->shape.shared_bytes;
    MLAI_TRY(
        MLAI_CU(cuda, cuModuleGetFunction(&loaded->function, loaded->module, row->entry)));
    if (loaded->program != artefact->shape.attend ||
        shared_bytes <= SHARED_WITHOUT_ASKING) {
        return MLA_OK;
    }
    return MLAI_CU(cuda, cuFuncSetAttribute(loaded->function, MLAI_CU_FUNCTION_SHARED_BYTES,
                                            (int)shared_bytes));
}

static mla_status load_kernel(mla_context *context, const mlai_artefact *artefact,
                              const mlai_cuda_kernel *kernel, mlai_launcher *launcher,
                              mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    mlai_cuda_loaded *loaded = &launcher->program[launcher->num_programs];
    const int64_t bytes = (int64_t)kernel->image_bytes;
    loaded->program = kernel->program;
    MLAI_TRY(mlai_ledger_book(&context->ledger, MLA_SPACE_DEVICE, MLA_FOR_PLAN, bytes,
                              mlai_cuda_program_of(kernel->program)->name, err));
    mla_status status = MLAI_CU(cuda, cuModuleLoadData(&loaded->module, kernel->image));
    if (status != MLA_OK) {
        (void)mlai_ledger_book(&context->ledger, MLA_SPACE_DEVICE, MLA_FOR_PLAN, -bytes,
                               "a kernel", NULL);
        return status;
    }
    loaded->booked_bytes = bytes;
    launcher->num_programs++; /* from here on unloading is right */
    return ready_function(cuda, artefact, loaded, err);
}

/* Entered. */
static void unload_programs(mla_context *context, mlai_launcher *launcher)
{
    const mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    while (launcher->num_programs > 0) {
        const mlai_cuda_loaded *loaded = &launcher->program[--launcher->num_programs];
        (void)cuda->driver->cuModuleUnload(loaded->module);
        (void)mlai_ledger_book(&context->ledger, MLA_SPACE_DEVICE, MLA_FOR_PLAN,
                               -loaded->booked_bytes, "a kernel", NULL);
    }
}

static mla_status load_all(mla_context *context, const mlai_artefact *artefact,
                           mlai_launcher *launcher, mla_error *err)
{
    mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    mla_status status = MLA_OK;
    MLAI_TRY(mlai_cuda_enter(cuda, err));
    for (int32_t i = 0; i < artefact->num_kernels && status == MLA_OK; i++) {
        status = load_kernel(context, artefact, &artefact->kernel[i], launcher, err);
    }
    if (status != MLA_OK) {
        unload_programs(context, launcher);
    }
    mlai_cuda_leave(cuda);
    return status;
}

static void give_launcher(mla_context *context, mlai_launcher *launcher)
{
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_PLAN, sizeof *launcher,
                     launcher);
}

mla_status mlai_cuda_load(mla_context *context, const mlai_geometry *geometry,
                          const mlai_artefact *artefact, mlai_launcher **out,
                          mla_error *err)
{
    (void)geometry;
    mlai_launcher *launcher;
    mlai_cuda_reap(context);
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_PLAN, 1, sizeof *launcher,
                                     "a launcher", (void **)&launcher, err));
    launcher->context = context;
    launcher->shape = artefact->shape;
    mla_status status = load_all(context, artefact, launcher, err);
    if (status != MLA_OK) {
        give_launcher(context, launcher);
        return status;
    }
    *out = launcher;
    return MLA_OK;
}

/* No module may go that the device still runs: appends and runs on any stream. */
static void unload_now(mla_context *context, mlai_launcher *launcher)
{
    const mlai_cuda *cuda = &mlai_cuda_state_of(context)->cuda;
    bool is_entered = mlai_cuda_enter_to_free(cuda);
    if (is_entered) {
        (void)cuda->driver->cuCtxSynchronize();
    }
    unload_programs(context, launcher);
    if (is_entered) {
        mlai_cuda_leave(cuda);
    }
    give_launcher(context, launcher);
}

void mlai_cuda_unload(mla_context *context, mlai_launcher *launcher)
{
    mlai_cuda_state *state = mlai_cuda_state_of(context);
    if (atomic_load(&launcher->num_captures) == 0) {
        unload_now(context, launcher);
    } else {
        pthread_mutex_lock(&state->mutex);
        launcher->next = state->kept;
        state->kept = launcher;
        pthread_mutex_unlock(&state->mutex);
    }
}

static mlai_launcher *take_a_free_one(mlai_cuda_state *state)
{
    pthread_mutex_lock(&state->mutex);
    mlai_launcher **at = &state->kept;
    while (*at && atomic_load(&(*at)->num_captures) != 0) {
        at = &(*at)->next;
    }
    mlai_launcher *found = *at;
    if (found) {
        *at = found->next;
    }
    pthread_mutex_unlock(&state->mutex);
    return found;
}

void mlai_cuda_reap(mla_context *context)
{
    mlai_cuda_state *state = mlai_cuda_state_of(context);
    for (mlai_launcher *l = take_a_free_one(state); l; l = take_a_free_one(state)) {
        unload_now(context, l);
    }
}
