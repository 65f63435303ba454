/* model_name.h - does a request mean the model that is served? */
#ifndef MLA_SERVER_API_MODEL_NAME_H
#define MLA_SERVER_API_MODEL_NAME_H

#include "server/api/fields.h"

/* The served name, the directory, or the directory's base name. */
bool model_is_served(const api_settings *settings, const char *name);
/* 404 model_not_found. */
bool model_refuse(const api_settings *settings, const char *name, api_failure *failure);
/* The field `model`, which may be missing. */
bool model_name_check(const api_settings *settings, const api_fields *fields);

#endif
