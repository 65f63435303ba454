/* fields.h - typed fields of a body. Null is as absent, and leaves *out as it is; another type
 * or a value out of range is a failure that names the field, the value and what it must be. A
 * whole real number is an integer, too, for clients that have no other numbers. */
#ifndef MLA_SERVER_API_FIELDS_H
#define MLA_SERVER_API_FIELDS_H

#include "server/api/failure.h"
#include "server/api/settings.h"

typedef struct api_fields {
    const json_t *object;
    const char *path; /* in front of the names, with its dot; "": the body itself */
    api_failure *failure;
} api_fields;

/* NULL: absent or null. */
const json_t *field_value(const api_fields *fields, const char *name);

bool field_bool(const api_fields *fields, const char *name, bool *out);
bool field_int(const api_fields *fields, const char *name, int64_t min, int64_t max,
               int64_t *out);
bool field_real(const api_fields *fields, const char *name, double min, double max,
                float *out);
/* *out: borrowed from the object; ends with a zero and has none inside. */
bool field_string(const api_fields *fields, const char *name, size_t max_bytes,
                  const char **out);
bool field_array(const api_fields *fields, const char *name, const json_t **out);
bool field_object(const api_fields *fields, const char *name, const json_t **out);

/* "NAME is VALUE; it must be RULE" */
bool field_refuse(const api_fields *fields, const char *name, const json_t *value,
                  const char *rule);

/* An integer, or a real one that is whole, from min to max. */
bool json_as_int(const json_t *value, int64_t min, int64_t max, int64_t *out);

#endif
