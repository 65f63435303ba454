/* backend.c - the CPU as a backend: compiling is choosing a table of kernels, everything
 * runs when it is launched, and there is nothing to wait for. */
#include "attention/backend.h"

#include <string.h>

#include "attention/context.h"
#include "attention/cpu/append_rows.h"
#include "attention/cpu/run.h"

struct mlai_artefact {
    const mlai_cpu_kernels *kernels;
};

struct mlai_launcher {
    const mlai_cpu_kernels *kernels;
};

struct mlai_graph {
    const mlai_cpu_kernels *kernels;
    mla_batch batch;
    mlai_launch launch;     /* its batch is the one above */
    mlai_schedule schedule; /* its arrays lie behind this struct */
    size_t bytes;
};

static const mlai_cpu_kernels *kernels_of(const mla_context *context)
{
    return mlai_cpu_kernels_best(context->isa_mask);
}

static const char *cpu_name(const mla_context *context)
{
    return kernels_of(context)->isa == MLA_ISA_AVX2 ? "cpu:avx2" : "cpu:c";
}

static mla_status cpu_open(mla_context *context, mla_error *err)
{
    MLAI_CHECK(kernels_of(context), MLA_ERR_UNSUPPORTED,
               "isa_mask 0x%x names no kernels of this build", context->isa_mask);
    return MLA_OK;
}

static void cpu_shut(mla_context *context)
{
    (void)context;
}

static mla_status cpu_choose(const mla_context *context, const mlai_geometry *geometry,
                             size_t *workspace_bytes, mla_error *err)
{
    mlai_cpu_layout layout;
    MLAI_TRY(mlai_cpu_layout_of(geometry, kernels_of(context), context->num_threads,
                                &layout, err));
    *workspace_bytes = layout.bytes;
    return MLA_OK;
}

static mlai_footprint cpu_footprint(const mla_context *context,
                                    const mlai_geometry *geometry)
{
    (void)context;
    (void)geometry;
    return (mlai_footprint){.artefact_bytes = sizeof(mlai_artefact),
                            .launcher_bytes = sizeof(mlai_launcher)};
}

static mla_status cpu_declare(mla_context *context, const mlai_geometry *geometry,
                              mlai_artefact **out, mla_error *err)
{
    (void)geometry;
    mlai_artefact *artefact;
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_SESSION, 1, sizeof *artefact,
                                     "a choice of kernels", (void **)&artefact, err));
    artefact->kernels = kernels_of(context);
    *out = artefact;
    return MLA_OK;
}

static mla_status cpu_compile(mla_context *context, const mlai_compile_job *job,
                              mla_error *err)
{
    (void)context;
    (void)err;
    job->progress(job->user, job->num, 0); /* the compiler has been here before */
    return MLA_OK;
}

static void cpu_discard(mla_context *context, mlai_artefact *artefact)
{
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_SESSION, sizeof *artefact,
                     artefact);
}

static mla_status cpu_load(mla_context *context, const mlai_geometry *geometry,
                           const mlai_artefact *artefact, mlai_launcher **out,
                           mla_error *err)
{
    (void)geometry;
    mlai_launcher *launcher;
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_PLAN, 1, sizeof *launcher,
                                     "a launcher", (void **)&launcher, err));
    launcher->kernels = artefact->kernels;
    *out = launcher;
    return MLA_OK;
}

static void cpu_unload(mla_context *context, mlai_launcher *launcher)
{
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_PLAN, sizeof *launcher,
                     launcher);
}

static void cpu_reap(mla_context *context)
{
    (void)context;
}

static uint64_t cpu_declared(const mlai_launcher *launcher)
{
    (void)launcher;
    return MLAI_CPU_ATTEND | MLAI_CPU_MERGE;
}

static mla_status cpu_upload(mla_context *context, void *to, const void *from, size_t bytes,
                             mla_error *err)
{
    (void)context;
    (void)err;
    memcpy(to, from, bytes);
    return MLA_OK;
}

static mla_status cpu_download(mla_context *context, void *to, const void *from,
                               size_t bytes, mla_error *err)
{
    return cpu_upload(context, to, from, bytes, err);
}

static mla_status cpu_clear(mla_context *context, void *to, size_t bytes, mla_error *err)
{
    (void)context;
    (void)err;
    memset(to, 0, bytes);
    return MLA_OK;
}

static mla_status cpu_launch(mla_context *context, const mlai_launcher *launcher,
                             const mlai_launch *launch, mla_error *err)
{
    mlai_schedule schedule = {.group = NULL}; /* its arrays go into the workspace */
    return mlai_cpu_run(context->pool, launcher->kernels, launch, &schedule, err);
}

static mla_status cpu_synchronise(mla_context *context, mla_error *err)
{
    (void)context;
    (void)err;
    return MLA_OK;
}

static mla_status cpu_make_mark(mla_context *context, mlai_mark **out, mla_error *err)
{
    (void)context;
    (void)err;
    *out = NULL;
    return MLA_OK;
}

static void cpu_pass_mark(mla_context *context, mlai_mark *mark)
{
    (void)context;
    (void)mark;
}

static mla_status cpu_poll(mla_context *context, mlai_mark *mark, mla_error *err)
{
    (void)context;
    (void)mark;
    (void)err;
    return MLA_OK;
}

static mla_status cpu_record(mla_context *context, const mlai_launcher *launcher,
                             const mlai_launch *launch, mlai_graph **out, mla_error *err)
{
    mlai_graph *graph;
    size_t num_groups = (size_t)launch->batch->num_query_rows;
    size_t num_slots =
        (size_t)mlai_schedule_num_slots(&launch->geometry->caps, context->num_threads);
    size_t bytes = sizeof *graph + num_groups * sizeof(mlai_group) +
                   num_slots * sizeof(mlai_slot_task);
    MLAI_TRY(mlai_ledger_take_zeroed(&context->ledger, MLA_FOR_GRAPH, 1, bytes,
                                     "a recorded batch", (void **)&graph, err));
    graph->kernels = launcher->kernels;
    graph->batch = *launch->batch;
    graph->launch = *launch;
    graph->launch.batch = &graph->batch;
    graph->bytes = bytes;
    graph->schedule.group = (mlai_group *)(graph + 1);
    graph->schedule.slot = (mlai_slot_task *)(graph->schedule.group + num_groups);
    *out = graph;
    return MLA_OK;
}

static mla_status cpu_replay(mla_context *context, mlai_graph *graph, mlai_mark *mark,
                             mla_stream stream, mla_error *err)
{
    (void)mark;
    (void)stream;
    return mlai_cpu_run(context->pool, graph->kernels, &graph->launch, &graph->schedule,
                        err);
}

static void cpu_drop_graph(mla_context *context, mlai_graph *graph)
{
    mlai_ledger_give(&context->ledger, MLA_SPACE_HOST, MLA_FOR_GRAPH, graph->bytes, graph);
}

static mla_status cpu_append(mla_context *context, const mlai_geometry *geometry,
                             const mlai_launcher *launcher, const mla_append_args *args,
                             mla_stream stream, mla_error *err)
{
    (void)context;
    (void)launcher;
    (void)stream;
    (void)err;
    mlai_cpu_append_rows(geometry, args);
    return MLA_OK;
}

const mlai_backend mlai_cpu_backend = {
    .space = MLA_SPACE_HOST,
    .name = cpu_name,
    .open = cpu_open,
    .shut = cpu_shut,
    .choose = cpu_choose,
    .footprint = cpu_footprint,
    .declare = cpu_declare,
    .compile = cpu_compile,
    .discard = cpu_discard,
    .load = cpu_load,
    .unload = cpu_unload,
    .reap = cpu_reap,
    .declared = cpu_declared,
    .upload = cpu_upload,
    .download = cpu_download,
    .clear = cpu_clear,
    .launch = cpu_launch,
    .synchronise = cpu_synchronise,
    .make_mark = cpu_make_mark,
    .drop_mark = cpu_pass_mark,
    .wait = cpu_pass_mark,
    .poll = cpu_poll,
    .record = cpu_record,
    .replay = cpu_replay,
    .drop_graph = cpu_drop_graph,
    .append = cpu_append,
};
