/* body.h - the body of a request becomes a JSON object: strict, and bounded before anything
 * is allocated for it. */
#ifndef MLA_SERVER_API_BODY_H
#define MLA_SERVER_API_BODY_H

#include "server/api/failure.h"
#include "server/api/settings.h"

/* Within a json_scope of settings->ledger. out: owned, json_decref. */
bool api_body_read(const api_settings *settings, const char *body, size_t bytes,
                   json_t **out, api_failure *failure);

#endif
