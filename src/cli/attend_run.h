/* attend_run.h - one attention call, from the arrays of a case to its output. */
#ifndef MLA_CLI_ATTEND_RUN_H
#define MLA_CLI_ATTEND_RUN_H

#include "cli/attend_case.h"
#include "cli/attention_call.h"

/* Rounds or quantises the query and the rows to the case's formats, then plans, binds and
 * runs. The result is in call->output [Q][H][D] and call->lse [Q][H], f32. call: {.context}
 * before; whatever the result, attention_call_free. */
mla_status attend_run(const attend_case *attend, attention_call *call, mla_error *err);

#endif
