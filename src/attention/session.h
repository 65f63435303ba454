/* session.h - the unit of preparation: requests that are declared, and the job that turns
 * them into plans.
 *
 * A job walks a table of steps: it declares the programs of every new plan, compiles them all
 * together, and loads and primes one plan after the other:
 *
 *   declare | compile | load, operands, prime, synchronise, verify, release
 *
 * Before each (step, plan) the session looks whether it was cancelled and asks the test
 * hook. Whatever ends a job, the device is synchronised and every transient byte given back;
 * a job that fails takes its new plans with it. */
#ifndef MLA_ATTENTION_SESSION_H
#define MLA_ATTENTION_SESSION_H

#include "attention/operands.h"
#include "attention/plan.h"

typedef enum mlai_step {
    MLAI_STEP_DECLARE,
    MLAI_STEP_COMPILE, /* asked for each plan, then done once */
    MLAI_STEP_LOAD,
    MLAI_STEP_OPERANDS,
    MLAI_STEP_PRIME,
    MLAI_STEP_SYNCHRONISE,
    MLAI_STEP_VERIFY,
    MLAI_STEP_RELEASE,
    MLAI_NUM_STEPS
} mlai_step;

const char *mlai_step_name(mlai_step step);

/* Asked before step `step` of the job's plan `n` (0, 1, ...): anything but MLA_OK fails the
 * step with that status. */
typedef mla_status (*mlai_step_hook)(void *user, mlai_step step, int32_t n);

/* One distinct request. */
typedef struct mlai_entry {
    mlai_geometry geometry;
    size_t workspace_bytes;
    mla_plan *plan;          /* owned: one user; NULL until its job is done */
    mla_plan *fresh;         /* owned: the plan that the job in progress makes */
    mlai_artefact *artefact; /* owned: from declare to load */
} mlai_entry;

struct mla_session {
    mla_context *context;
    mlai_entry *entry; /* [entry_room] */
    int32_t num_entries, entry_room;
    int32_t *ticket; /* [ticket_room] -> entry */
    int32_t num_tickets, ticket_room;
    atomic_bool is_cancelled;
    char *cache_dir;  /* owned; NULL: none */
    char *nvrtc_path; /* owned; NULL: by name */
    int32_t num_compile_workers;
    mla_progress progress;
    void (*on_progress)(void *user, const mla_progress *progress);
    void *progress_user;
    mlai_step_hook hook; /* NULL outside tests */
    void *hook_user;
    mlai_operands operands; /* of the plan that is being primed */
    mlai_programs launched; /* what that prime launched */
#ifdef MLA_RETAIN_PRIMING
    mlai_operands kept;
#endif
};

void mlai_session_set_hook(mla_session *session, mlai_step_hook hook, void *user);

#endif
