/* option_lists.h - the options that are lists: stop strings, stop ids, biases. */
#ifndef MLA_SERVER_API_OPTION_LISTS_H
#define MLA_SERVER_API_OPTION_LISTS_H

#include "server/api/fields.h"
#include "server/api/memory.h"

bool option_lists_read(const api_settings *settings, const api_fields *fields,
                       api_memory *memory, engine_request *each);

/* array -> ids in memory, each from 0 to the vocabulary's last; name: for failures. */
bool option_ids_read(const api_settings *settings, const api_fields *fields,
                     const char *name, const json_t *array, api_memory *memory,
                     const int32_t **out);

#endif
