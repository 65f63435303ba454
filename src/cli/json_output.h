/* json_output.h - one JSON value on standard output, whole or not at all. */
#ifndef MLA_CLI_JSON_OUTPUT_H
#define MLA_CLI_JSON_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>

#include "attention/context.h"
#include "model/json.h"

/* Everything that makes JSON stands between these two; its memory is class server of the
 * context. */
static inline json_scope json_output_begin(mla_context *context)
{
    return json_scope_enter(mlai_context_ledger(context), MLA_FOR_SERVER);
}

/* A number with no more digits than mean something: 3 after the point. */
json_t *json_output_rounded(double value);

/* value: consumed; NULL is MLA_ERR_NO_MEMORY. is_wide: one key a line. */
mla_status json_output_print(json_t *value, bool is_wide, mla_error *err);

#endif
