/* backend.h - what a device has to provide, in one table. Session, plan and binding know
 * nothing else of it, so that accounts, lifetimes and the order of preparation are the same
 * code everywhere.
 *
 *   compile -> artefact (session)   what a compiler leaves; may be made on any thread
 *   load    -> launcher (plan)      what a launch needs, for as long as the plan lives
 *   launch                          enqueues one batch; primes, runs, and nothing else does
 *
 * All memory is taken through the context's ledger, under the class written beside it.
 * Every function but shut, discard, unload and drop_graph may fail; those four may not. */
#ifndef MLA_ATTENTION_BACKEND_H
#define MLA_ATTENTION_BACKEND_H

#include "attention/geometry.h"
#include "attention/programs.h"

typedef struct mlai_artefact mlai_artefact;
typedef struct mlai_launcher mlai_launcher;
typedef struct mlai_graph mlai_graph;

typedef struct mlai_launch {
    const mlai_geometry *geometry;
    const mla_buffers *buffers; /* full size, checked by bind */
    const mla_batch *batch;     /* full size, its numbers checked */
    mla_stream stream;
    mlai_programs *launched; /* NULL, or notes each program that this launch starts */
} mlai_launch;

/* Bytes that preparing one plan takes beside its operands. */
typedef struct mlai_footprint {
    size_t artefact_bytes; /* session, host */
    size_t launcher_bytes; /* plan, host */
    size_t module_bytes;   /* plan, in the operands' space */
} mlai_footprint;

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
    mla_status (*compile)(mla_context *context, const mlai_geometry *geometry,
                          mlai_artefact **out, mla_error *err);
    void (*discard)(mla_context *context, mlai_artefact *artefact);
    mla_status (*load)(mla_context *context, const mlai_geometry *geometry,
                       const mlai_artefact *artefact, mlai_launcher **out, mla_error *err);
    void (*unload)(mla_context *context, mlai_launcher *launcher);
    uint64_t (*declared)(const mlai_launcher *launcher); /* programs it may launch */

    /* Into the operands' space, before the next launch on the null stream. */
    mla_status (*upload)(mla_context *context, void *to, const void *from, size_t bytes,
                         mla_error *err);
    mla_status (*clear)(mla_context *context, void *to, size_t bytes, mla_error *err);

    /* Allocates nothing, waits for nothing that is not its own on a CPU. */
    mla_status (*launch)(mla_context *context, const mlai_launcher *launcher,
                         const mlai_launch *launch, mla_error *err);
    mla_status (*synchronise)(mla_context *context, mla_error *err);
    mla_status (*poll)(mla_context *context, mla_error *err); /* never waits */

    /* The graph keeps launch->batch by value and launch->buffers by pointer (class graph). */
    mla_status (*record)(mla_context *context, const mlai_launcher *launcher,
                         const mlai_launch *launch, mlai_graph **out, mla_error *err);
    mla_status (*replay)(mla_context *context, mlai_graph *graph, mla_stream stream,
                         mla_error *err);
    void (*drop_graph)(mla_context *context, mlai_graph *graph);

    /* args: full size, checked. */
    mla_status (*append)(mla_context *context, const mlai_geometry *geometry,
                         const mla_append_args *args, mla_stream stream, mla_error *err);
} mlai_backend;

/* NULL where this build has none. */
const mlai_backend *mlai_backend_of(mla_backend kind);

extern const mlai_backend mlai_cpu_backend;

#endif
