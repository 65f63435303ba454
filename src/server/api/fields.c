/* fields.c - typed fields of a body: see fields.h. */
#include "server/api/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RULE_BYTES = 96, PARAM_BYTES = 64 };

const json_t *field_value(const api_fields *fields, const char *name)
{
    const json_t *value = json_object_get(fields->object, name);
    return json_is_null(value) ? NULL : value;
}

bool field_refuse(const api_fields *fields, const char *name, const json_t *value,
                  const char *rule)
{
    char param[PARAM_BYTES];
    (void)snprintf(param, sizeof param, "%s%s", fields->path, name);
    return api_fail(fields->failure, API_BAD_REQUEST, param, NULL,
                    "%s is %s; it must be %s", param, json_words_of(value).text, rule);
}

bool field_bool(const api_fields *fields, const char *name, bool *out)
{
    const json_t *value = field_value(fields, name);
    if (!value) {
        return true;
    }
    if (!json_is_boolean(value)) {
        return field_refuse(fields, name, value, "true or false");
    }
    *out = json_is_true(value);
    return true;
}

bool json_as_int(const json_t *value, int64_t min, int64_t max, int64_t *out)
{
    static const double exact =
        9007199254740992.0; /* 2^53: reals have every integer to here */
    int64_t number = json_integer_value(value);
    if (json_is_real(value)) {
        double real = json_real_value(value);
        if (!(fabs(real) <= exact) || real != trunc(real)) {
            return false;
        }
        number = (int64_t)real;
    } else if (!json_is_integer(value)) {
        return false;
    }
    if (number < min || number > max) {
        return false;
    }
    *out = number;
    return true;
}

bool field_int(const api_fields *fields, const char *name, int64_t min, int64_t max,
               int64_t *out)
{
    char rule[RULE_BYTES];
    const json_t *value = field_value(fields, name);
    if (!value || json_as_int(value, min, max, out)) {
        return true;
    }
    (void)snprintf(rule, sizeof rule, "an integer from %lld to %lld", (long long)min,
                   (long long)max);
    return field_refuse(fields, name, value, rule);
}

bool field_real(const api_fields *fields, const char *name, double min, double max,
                float *out)
{
    char rule[RULE_BYTES];
    const json_t *value = field_value(fields, name);
    double number = json_number_value(value);
    if (!value) {
        return true;
    }
    if (json_is_number(value) && number >= min && number <= max) {
        *out = (float)number;
        return true;
    }
    (void)snprintf(rule, sizeof rule, "a number from %g to %g", min, max);
    return field_refuse(fields, name, value, rule);
}

bool field_string(const api_fields *fields, const char *name, size_t max_bytes,
                  const char **out)
{
    char rule[RULE_BYTES];
    const json_t *value = field_value(fields, name);
    if (!value) {
        return true;
    }
    if (json_is_string(value) && json_string_length(value) <= max_bytes) {
        *out = json_string_value(value);
        return true;
    }
    (void)snprintf(rule, sizeof rule, "a string of at most %zu bytes", max_bytes);
    return field_refuse(fields, name, value, rule);
}

bool field_array(const api_fields *fields, const char *name, const json_t **out)
{
    const json_t *value = field_value(fields, name);
    if (value && !json_is_array(value)) {
        return field_refuse(fields, name, value, "an array");
    }
    *out = value ? value : *out;
    return true;
}

bool field_object(const api_fields *fields, const char *name, const json_t **out)
{
    const json_t *value = field_value(fields, name);
    if (value && !json_is_object(value)) {
        return field_refuse(fields, name, value, "an object");
    }
    *out = value ? value : *out;
    return true;
}
