/* refused.h - fields that are known and not served: refused by name where they would change
 * the answer, so that nobody believes they were heard. */
#ifndef MLA_SERVER_API_REFUSED_H
#define MLA_SERVER_API_REFUSED_H

#include "server/api/call.h"
#include "server/api/fields.h"

/* false: one of them asks for something. */
bool refused_fields_check(const api_fields *fields, api_kind kind);

#endif
