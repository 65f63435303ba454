/* attend_run.h - one attention call, from the arrays of a case to its output. */
#ifndef MLA_CLI_ATTEND_RUN_H
#define MLA_CLI_ATTEND_RUN_H

#include "cli/attend_case.h"

typedef struct attend_result {
    mla_context *context;
    float *out;                  /* [Q][H][D] */
    float *lse;                  /* [Q][H] */
    size_t out_bytes, lse_bytes; /* as taken, class activations */
} attend_result;

/* Rounds or quantises the query and the rows to the case's formats, then plans, binds and
 * runs. out: {0} before; whatever the result, attend_result_free. */
mla_status attend_run(const attend_case *attend, attend_result *out, mla_error *err);
void attend_result_free(attend_result *result);

#endif
