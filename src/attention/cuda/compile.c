/* compile.c - gives the kernels of a job their images. Equal kernels of different plans are
 * compiled once; each keeps an image of its own, so that plans end independently. */
#include <string.h>

#include "attention/cuda/artefact.h"

/* A kernel that no cache has; its equals wait for its image. */
typedef struct pending_kernel {
    mlai_cuda_kernel *kernel;
    const char *option[MLAI_CUDA_NUM_OPTIONS];
} pending_kernel;

/* A job while it runs. */
typedef struct job_state {
    mla_context *context;
    const mlai_compile_job *job;
    mlai_nvrtc nvrtc;
    int32_t num_pending;
    pending_kernel *pending;       /* [room] */
    mlai_compilation *compilation; /* [room] */
} job_state;

static const char *name_of(const mlai_cuda_kernel *kernel)
{
    return mlai_cuda_program_of(kernel->program)->name;
}

/* Returns how many there are. */
static int32_t list_options(const mlai_cuda_kernel *kernel,
                            const char *option[MLAI_CUDA_NUM_OPTIONS])
{
    int32_t num = 0;
    option[num++] = kernel->architecture;
    for (int32_t i = 0; i < kernel->options.num; i++) {
        option[num++] = kernel->options.text[i];
    }
    return num;
}

static void name_kernel(mlai_cuda_kernel *kernel, int32_t compiler)
{
    const char *option[MLAI_CUDA_NUM_OPTIONS];
    int32_t num = list_options(kernel, option);
    kernel->id = mlai_kernel_id_of(mlai_cuda_program_of(kernel->program)->source, option,
                                   num, compiler);
}

static mla_status give_image(job_state *s, mlai_cuda_kernel *kernel, const void *image,
                             size_t image_bytes, mla_error *err)
{
    enum { ALIGN_BYTES = 64 };
    MLAI_TRY(mlai_ledger_take(&s->context->ledger, MLA_SPACE_HOST, MLA_FOR_SESSION,
                              image_bytes, ALIGN_BYTES, name_of(kernel), &kernel->image,
                              err));
    kernel->image_bytes = image_bytes;
    memcpy(kernel->image, image, image_bytes);
    return MLA_OK;
}

static bool is_pending(const job_state *s, const mlai_kernel_id *id)
{
    for (int32_t i = 0; i < s->num_pending; i++) {
        if (mlai_kernel_id_is_equal(&s->pending[i].kernel->id, id)) {
            return true;
        }
    }
    return false;
}

static mla_status share_with(job_state *s, mlai_artefact *artefact,
                             const mlai_kernel_id *id, const void *image,
                             size_t image_bytes, mla_error *err)
{
    for (int32_t i = 0; i < artefact->num_kernels; i++) {
        mlai_cuda_kernel *kernel = &artefact->kernel[i];
        if (!kernel->image && mlai_kernel_id_is_equal(&kernel->id, id)) {
            MLAI_TRY(give_image(s, kernel, image, image_bytes, err));
            kernel->was_compiled = is_pending(s, id);
        }
    }
    return MLA_OK;
}

/* To every kernel of the job that is equal to this one and has none. */
static mla_status share_image(job_state *s, const mlai_kernel_id *id, const void *image,
                              size_t image_bytes, mla_error *err)
{
    for (int32_t n = 0; n < s->job->num; n++) {
        MLAI_TRY(
            share_with(s, s->job->artefact(s->job->user, n), id, image, image_bytes, err));
    }
    return MLA_OK;
}

static void report(const job_state *s)
{
    int32_t num_done = 0;
    int32_t num_from_cache = 0;
    for (int32_t n = 0; n < s->job->num; n++) {
        const mlai_artefact *artefact = s->job->artefact(s->job->user, n);
        bool is_done = true;
        bool was_compiled = false;
        for (int32_t i = 0; i < artefact->num_kernels; i++) {
            is_done = is_done && artefact->kernel[i].image;
            was_compiled = was_compiled || artefact->kernel[i].was_compiled;
        }
        num_done += is_done;
        num_from_cache += is_done && !was_compiled;
    }
    s->job->progress(s->job->user, num_done, num_from_cache);
}

/* buffer: [MLAI_IMAGE_MAX_BYTES]. */
static mla_status look_in_cache(job_state *s, mlai_cuda_kernel *kernel, void *buffer,
                                bool *is_found, mla_error *err)
{
    size_t bytes = 0;
    mla_error why = {.status = MLA_OK};
    mlai_cached cached = mlai_kernel_cache_get(s->job->cache_dir, &kernel->id, buffer,
                                               MLAI_IMAGE_MAX_BYTES, &bytes, &why);
    *is_found = cached == MLAI_CACHED_FOUND;
    if (cached == MLAI_CACHED_CORRUPT) {
        mlai_context_log(s->context, MLA_LOG_ERROR,
                         "the cached kernel %s is corrupt (%s): it is compiled again",
                         name_of(kernel), why.message);
    }
    return *is_found ? share_image(s, &kernel->id, buffer, bytes, err) : MLA_OK;
}

static void add_pending(job_state *s, mlai_cuda_kernel *kernel)
{
    int32_t i = s->num_pending++;
    s->pending[i].kernel = kernel;
    s->compilation[i] = (mlai_compilation){
        .name = name_of(kernel),
        .source = mlai_cuda_program_of(kernel->program)->source,
        .options = s->pending[i].option,
        .num_options = list_options(kernel, s->pending[i].option),
    };
}

static mla_status sort_out_artefact(job_state *s, mlai_artefact *artefact, void *buffer,
                                    mla_error *err)
{
    for (int32_t i = 0; i < artefact->num_kernels; i++) {
        mlai_cuda_kernel *kernel = &artefact->kernel[i];
        bool is_found = false;
        if (kernel->image || is_pending(s, &kernel->id)) {
            continue;
        }
        if (s->job->cache_dir) {
            MLAI_TRY(look_in_cache(s, kernel, buffer, &is_found, err));
        }
        if (!is_found) {
            add_pending(s, kernel);
        }
    }
    return MLA_OK;
}

/* Names all kernels, takes what the cache has, and lists the rest. */
static mla_status sort_out(job_state *s, mla_error *err)
{
    enum { ALIGN_BYTES = 64 };
    mlai_ledger *ledger = &s->context->ledger;
    void *buffer = NULL;
    mla_status status = MLA_OK;
    for (int32_t n = 0; n < s->job->num; n++) {
        mlai_artefact *artefact = s->job->artefact(s->job->user, n);
        for (int32_t i = 0; i < artefact->num_kernels; i++) {
            name_kernel(&artefact->kernel[i], s->nvrtc.version);
        }
    }
    if (s->job->cache_dir) {
        MLAI_TRY(mlai_ledger_take(ledger, MLA_SPACE_HOST, MLA_FOR_SESSION,
                                  MLAI_IMAGE_MAX_BYTES, ALIGN_BYTES, "a cached kernel",
                                  &buffer, err));
    }
    for (int32_t n = 0; n < s->job->num && status == MLA_OK; n++) {
        status = sort_out_artefact(s, s->job->artefact(s->job->user, n), buffer, err);
    }
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_SESSION, MLAI_IMAGE_MAX_BYTES, buffer);
    return status;
}

static mla_status keep_on(void *user, mla_error *err)
{
    const job_state *s = user;
    return s->job->keep_on(s->job->user, err);
}

static mla_status take_image(void *user, int32_t index, const void *image,
                             size_t image_bytes, mla_error *err)
{
    job_state *s = user;
    const mlai_cuda_kernel *kernel = s->pending[index].kernel;
    const mlai_kernel_id id = kernel->id;
    mla_error why;
    MLAI_TRY(share_image(s, &id, image, image_bytes, err));
    if (s->job->cache_dir &&
        mlai_kernel_cache_put(s->job->cache_dir, &id, image, image_bytes, &why) != MLA_OK) {
        mlai_context_log(s->context, MLA_LOG_ERROR, "%s: %s", name_of(kernel), why.message);
    }
    report(s);
    return MLA_OK;
}

static mla_status compile_pending(job_state *s, mla_error *err)
{
    int32_t num_workers =
        s->job->num_workers < s->num_pending ? s->job->num_workers : s->num_pending;
    mlai_workers workers = {
        .ledger = &s->context->ledger,
        .nvrtc = &s->nvrtc,
        .num_workers = num_workers < MLAI_MAX_WORKERS ? num_workers : MLAI_MAX_WORKERS,
        .keep_on = keep_on,
        .take = take_image,
        .user = s,
    };
    return mlai_workers_run(&workers, s->compilation, s->num_pending, err);
}

static mla_status run_job(job_state *s, mla_error *err)
{
    MLAI_TRY(mlai_nvrtc_open(s->job->nvrtc_path, &s->nvrtc, err));
    MLAI_TRY(sort_out(s, err));
    report(s);
    return compile_pending(s, err);
}

mla_status mlai_cuda_compile(mla_context *context, const mlai_compile_job *job,
                             mla_error *err)
{
    job_state s = {.context = context, .job = job};
    mlai_ledger *ledger = &context->ledger;
    const size_t room = (size_t)job->num * MLAI_CUDA_PLAN_PROGRAMS;
    mla_status status =
        mlai_ledger_take_zeroed(ledger, MLA_FOR_SESSION, room, sizeof *s.pending,
                                "a list of kernels", (void **)&s.pending, err);
    if (status == MLA_OK) {
        status =
            mlai_ledger_take_zeroed(ledger, MLA_FOR_SESSION, room, sizeof *s.compilation,
                                    "a list of compilations", (void **)&s.compilation, err);
    }
    if (status == MLA_OK) {
        status = run_job(&s, err);
    }
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_SESSION, room * sizeof *s.compilation,
                     s.compilation);
    mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_SESSION, room * sizeof *s.pending,
                     s.pending);
    return status;
}
