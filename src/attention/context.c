/* context.c - create, destroy and freeze: the frame in which everything else lives. */
#include "attention/context.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/sized.h"
#include "device/cpu.h"

const mlai_backend *mlai_backend_of(mla_backend kind)
{
    switch (kind) {
    case MLA_BACKEND_CPU:
        return &mlai_cpu_backend;
    case MLA_BACKEND_CUDA:
        return &mlai_cuda_backend;
    }
    return NULL;
}

void mlai_context_log(const mla_context *context, mla_log_level level, const char *format,
                      ...)
{
    if (!context->log || level > context->log_level) {
        return;
    }
    char line[256];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(line, sizeof line, format, values);
    va_end(values);
    context->log(context->log_user, level, line);
}

static mla_status check_options(const mla_context_options *options, mla_error *err)
{
    MLAI_CHECK(options->backend == MLA_BACKEND_CPU || options->backend == MLA_BACKEND_CUDA,
               MLA_ERR_ARGUMENT, "backend is %d, which is not one of mla_backend",
               (int)options->backend);
    MLAI_CHECK(options->backend == MLA_BACKEND_CUDA || options->device == 0,
               MLA_ERR_UNSUPPORTED, "device is %d, and the CPU is device 0",
               options->device);
    MLAI_CHECK(options->num_threads >= 0, MLA_ERR_ARGUMENT,
               "num_threads is %d, and a context has at least 1", options->num_threads);
    MLAI_CHECK(options->log_level >= MLA_LOG_ERROR && options->log_level <= MLA_LOG_TIMING,
               MLA_ERR_ARGUMENT, "log_level is %d, which is not one of mla_log_level",
               (int)options->log_level);
    MLAI_CHECK(options->reserved == 0, MLA_ERR_ARGUMENT, "reserved is %d, not 0",
               options->reserved);
    return MLA_OK;
}

static mla_status choose_isa(const mla_context_options *options, uint32_t *out,
                             mla_error *err)
{
    uint32_t wanted = options->isa_mask;
    if (options->backend == MLA_BACKEND_CUDA) {
        *out = wanted; /* its backend knows the device, and looks */
        return MLA_OK;
    }
    uint32_t available = mlai_cpu_isa();
    MLAI_CHECK(wanted == 0 || (wanted & available) != 0, MLA_ERR_UNSUPPORTED,
               "isa_mask is 0x%x, and this CPU has 0x%x", wanted, available);
    *out = mlai_cpu_isa_narrow(available, wanted);
    return MLA_OK;
}

/* A CUDA context has no work for a pool: its threads are the caller's. */
static int32_t num_threads_of(const mla_context_options *options)
{
    return options->backend == MLA_BACKEND_CUDA ? 1
           : options->num_threads != 0          ? options->num_threads
                                                : mlai_cpu_count();
}

/* The context's own memory is in its own ledger: it is taken through a ledger that lives
 * only here, and then booked. */
static mla_status take_context(const mla_allocator *allocator, uint64_t limit_bytes,
                               mla_context **out, mla_error *err)
{
    mlai_ledger first;
    mla_context *context;
    MLAI_TRY(mlai_ledger_init(&first, allocator, limit_bytes, err));
    MLAI_TRY(mlai_ledger_take_zeroed(&first, MLA_FOR_CONTEXT, 1, sizeof *context,
                                     "the context", (void **)&context, err));
    mla_status status = mlai_ledger_init(&context->ledger, allocator, limit_bytes, err);
    if (status == MLA_OK) {
        status = mlai_ledger_book(&context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                                  (int64_t)sizeof *context, "the context", err);
    }
    if (status != MLA_OK) {
        mlai_ledger_give(&first, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *context, context);
        return status;
    }
    *out = context;
    return MLA_OK;
}

static void give_context(mla_context *context)
{
    const mla_allocator allocator = context->ledger.allocator;
    pthread_mutex_destroy(&context->gate);
    allocator.release(allocator.user, context, sizeof *context, MLA_SPACE_HOST,
                      MLA_FOR_CONTEXT);
}

static mla_status read_allocator(const mla_allocator *from, mla_allocator *copy,
                                 const mla_allocator **out, mla_error *err)
{
    *out = NULL;
    if (from) {
        MLAI_TRY(MLAI_SIZED_READ(mla_allocator, release, from, copy));
        *out = copy;
    }
    return MLA_OK;
}

static mla_status start(mla_context *context, mla_error *err)
{
    MLAI_TRY(mlai_pool_start(&context->ledger, context->num_threads, &context->pool, err));
    mla_status status = context->ops->open(context, err);
    if (status != MLA_OK) {
        mlai_pool_stop(&context->pool);
    }
    return status;
}

mla_status mla_context_create(const mla_context_options *options, mla_context **out,
                              mla_error *err)
{
    mla_context_options full;
    mla_allocator copy;
    const mla_allocator *allocator;
    mla_context *context;
    uint32_t isa_mask = MLA_ISA_C;
    MLAI_CHECK(out, MLA_ERR_ARGUMENT, "out is NULL");
    MLAI_TRY(MLAI_SIZED_READ(mla_context_options, backend, options, &full));
    MLAI_TRY(check_options(&full, err));
    MLAI_TRY(choose_isa(&full, &isa_mask, err));
    MLAI_TRY(read_allocator(full.allocator, &copy, &allocator, err));
    MLAI_TRY(take_context(allocator, full.memory_limit_bytes, &context, err));
    context->backend = full.backend;
    context->ops = mlai_backend_of(full.backend);
    context->device = full.device;
    context->num_threads = num_threads_of(&full);
    context->isa_mask = isa_mask;
    context->log = full.log;
    context->log_user = full.log_user;
    context->log_level = full.log_level;
    pthread_mutex_init(&context->gate, NULL);
    mla_status status = start(context, err);
    if (status != MLA_OK) {
        give_context(context);
        return status;
    }
    context->own_bytes = mlai_ledger_now(&context->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT);
    *out = context;
    return MLA_OK;
}

/* Memory that would be left without books: what was taken or booked through the context. */
static mla_status check_empty(const mla_context *context, mla_error *err)
{
    int num_children = atomic_load(&context->num_children);
    MLAI_CHECK(num_children == 0, MLA_ERR_STATE,
               "%d sessions, plans, bindings and captured runs of the context are alive",
               num_children);
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        for (int purpose = MLA_FOR_CONTEXT; purpose < MLA_NUM_PURPOSES; purpose++) {
            uint64_t bytes =
                mlai_ledger_now(&context->ledger, (mla_space)space, (mla_purpose)purpose);
            bytes -= space == MLA_SPACE_HOST && purpose == MLA_FOR_CONTEXT
                         ? context->own_bytes
                         : 0;
            MLAI_CHECK(bytes == 0, MLA_ERR_STATE,
                       "%llu bytes of %s memory for %s were not given back",
                       (unsigned long long)bytes, mla_space_name((mla_space)space),
                       mla_purpose_name((mla_purpose)purpose));
        }
    }
    return MLA_OK;
}

mla_status mla_context_destroy(mla_context **context, mla_error *err)
{
    MLAI_CHECK(context, MLA_ERR_ARGUMENT, "context is NULL");
    if (!*context) {
        return MLA_OK;
    }
    (*context)->ops->reap(*context);
    MLAI_TRY(check_empty(*context, err));
    (*context)->ops->shut(*context);
    mlai_pool_stop(&(*context)->pool);
    give_context(*context);
    *context = NULL;
    return MLA_OK;
}

mla_status mla_context_freeze(mla_context *context, mla_error *err)
{
    MLAI_CHECK(context, MLA_ERR_ARGUMENT, "context is NULL");
    pthread_mutex_lock(&context->gate);
    int32_t num_sessions = context->num_sessions;
    if (num_sessions == 0) {
        mlai_ledger_freeze(&context->ledger);
    }
    pthread_mutex_unlock(&context->gate);
    MLAI_CHECK(num_sessions == 0, MLA_ERR_STATE,
               "%d sessions are open, and a context is frozen with none", num_sessions);
    return MLA_OK;
}
