/* backend.h - what a device has to provide, in one table. Session, plan and binding know
 * nothing else of it, so that accounts, lifetimes and the order of preparation are the same
 * code everywhere.
 *
 *   declare -> artefact (session)   names the programs that a plan needs
 *   compile                         fills the artefacts of all new plans, together
 *   load    -> launcher (plan)      what a launch needs, for as long as the plan lives
 *   launch                          enqueues one batch; primes, runs, and nothing else does
 *
 * All memory is taken through the context's ledger, under the class written beside it.
 * What gives back may not fail: shut, discard, unload, reap, wait, drop_mark, drop_graph. */
#ifndef MLA_ATTENTION_BACKEND_H
#define MLA_ATTENTION_BACKEND_H

#include "attention/geometry.h"
#include "attention/programs.h"

typedef struct mlai_artefact mlai_artefact;
typedef struct mlai_launcher mlai_launcher;
typedef struct mlai_graph mlai_graph;
typedef struct mlai_mark
    mlai_mark; /* how far the last launch of a binding is; may be NULL */

typedef struct mlai_launch {
    const mlai_geometry *geometry;
    const mla_buffers *buffers; /* full size, checked by bind */
    const mla_batch *batch;     /* full size, its numbers checked */
    mla_stream stream;
    mlai_mark *mark;         /* of the binding; NULL while priming */
    mlai_programs *launched; /* NULL, or notes each program that this launch starts */
} mlai_launch;

/* Bytes that preparing one plan takes beside its operands. */
typedef struct mlai_footprint {
    size_t artefact_bytes; /* session, host */
    size_t launcher_bytes; /* plan, host */
    size_t module_bytes;   /* plan, in the operands' space */
} mlai_footprint;

/* What compiling together needs to know. */
typedef struct mlai_compile_job {
    mlai_artefact *(*artefact)(void *user, int32_t n); /* n in [0, num) */
    int32_t num;
    int32_t num_workers;                               /* at least 1 */
    const char *cache_dir;                             /* NULL: none */
    const char *nvrtc_path;                            /* NULL: by name */
    mla_status (*keep_on)(void *user, mla_error *err); /* asked often: not MLA_OK ends it */
    void (*progress)(void *user, int32_t num_compiled, int32_t num_from_cache);
    void *user;
} mlai_compile_job;

typedef struct mlai_backend {
    mla_space space; /* where the caller's arrays and the operands lie */
    const char *(*name)(const mla_context *context); /* "cpu:avx2" */
    mla_status (*open)(mla_context *context, mla_error *err);
    void (*shut)(mla_context *context);

    /* Can this geometry be served here? MLA_ERR_UNSUPPORTED with the reason. Allocates
     * nothing. workspace_bytes: exact. */
    mla_status (*choose)(const mla_context *context, const mlai_geometry *geometry,
                         size_t *workspace_bytes, mla_error *err);
    mlai_footprint (*footprint)(const mla_context *context, const mlai_geometry *geometry);
    mla_status (*declare)(mla_context *context, const mlai_geometry *geometry,
                          mlai_artefact **out, mla_error *err);
    mla_status (*compile)(mla_context *context, const mlai_compile_job *job,
                          mla_error *err);
    void (*discard)(mla_context *context, mlai_artefact *artefact);
    mla_status (*load)(mla_context *context, const mlai_geometry *geometry,
                       const mlai_artefact *artefact, mlai_launcher **out, mla_error *err);
    void (*unload)(mla_context *context,
                   mlai_launcher *launcher); /* waits for the device */
    void (*reap)(mla_context *context);      /* unloads what the caller's graphs had kept */
    uint64_t (*declared)(const mlai_launcher *launcher); /* programs it may launch */

    /* Into the operands' space, before the next launch on the null stream. */
    mla_status (*upload)(mla_context *context, void *to, const void *from, size_t bytes,
                         mla_error *err);
    mla_status (*download)(mla_context *context, void *to, const void *from, size_t bytes,
                           mla_error *err); /* waits for the null stream */
    mla_status (*clear)(mla_context *context, void *to, size_t bytes, mla_error *err);

    /* Allocates nothing, waits for nothing that is not its own on a CPU. */
    mla_status (*launch)(mla_context *context, const mlai_launcher *launcher,
                         const mlai_launch *launch, mla_error *err);
    mla_status (*synchronise)(mla_context *context, mla_error *err);
    mla_status (*make_mark)(mla_context *context, mlai_mark **out, mla_error *err);
    void (*drop_mark)(mla_context *context, mlai_mark *mark);
    void (*wait)(mla_context *context, mlai_mark *mark);
    mla_status (*poll)(mla_context *context, mlai_mark *mark,
                       mla_error *err); /* never waits */

    /* The graph keeps launch->batch by value and launch->buffers by pointer (class graph). */
    mla_status (*record)(mla_context *context, const mlai_launcher *launcher,
                         const mlai_launch *launch, mlai_graph **out, mla_error *err);
    mla_status (*replay)(mla_context *context, mlai_graph *graph, mlai_mark *mark,
                         mla_stream stream, mla_error *err);
    void (*drop_graph)(mla_context *context, mlai_graph *graph);

    /* args: full size, checked. */
    mla_status (*append)(mla_context *context, const mlai_geometry *geometry,
                         const mlai_launcher *launcher, const mla_append_args *args,
                         mla_stream stream, mla_error *err);
} mlai_backend;

/* NULL where this build has none. */
const mlai_backend *mlai_backend_of(mla_backend kind);

extern const mlai_backend mlai_cpu_backend;
extern const mlai_backend mlai_cuda_backend;

#endif
