/* json_key.c - typed values by key, with errors that name what was found. */
#include <math.h>
#include <stdio.h>

#include "model/json.h"

json_words json_words_of(const json_t *value)
{
    json_words words = {.text = "missing"};
    if (json_is_object(value)) {
        words = (json_words){.text = "an object"};
    } else if (json_is_array(value)) {
        words = (json_words){.text = "an array"};
    } else if (json_is_string(value)) {
        (void)snprintf(words.text, sizeof words.text, "\"%.40s\"",
                       json_string_value(value));
    } else if (value) {
        size_t bytes =
            json_dumpb(value, words.text, sizeof words.text - 1, JSON_ENCODE_ANY);
        words.text[bytes < sizeof words.text ? bytes : sizeof words.text - 1] = 0;
    }
    return words;
}

bool key_is_set(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value);
}

#define REFUSE(what)                                                                       \
    MLAI_FAIL(MLA_ERR_CORRUPT, "%s: %.60s is %s and should be %s", doc->name, key,         \
              json_words_of(value).text, (what))

mla_status key_int(const json_document *doc, const json_t *object, const char *key,
                   int64_t min, int64_t max, int64_t *out, mla_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) {
        return REFUSE("an integer");
    }
    int64_t number = json_integer_value(value);
    MLAI_CHECK(min <= number && number <= max, MLA_ERR_CORRUPT,
               "%s: %.60s is %lld, outside %lld to %lld", doc->name, key, (long long)number,
               (long long)min, (long long)max);
    *out = number;
    return MLA_OK;
}

mla_status key_real(const json_document *doc, const json_t *object, const char *key,
                    double min, double max, double *out, mla_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) {
        return REFUSE("a number");
    }
    double number = json_number_value(value);
    MLAI_CHECK(isfinite(number) && min <= number && number <= max, MLA_ERR_CORRUPT,
               "%s: %.60s is %g, outside %g to %g", doc->name, key, number, min, max);
    *out = number;
    return MLA_OK;
}

mla_status key_bool(const json_document *doc, const json_t *object, const char *key,
                    bool *out, mla_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value)) {
        return MLA_OK;
    }
    if (!json_is_boolean(value)) {
        return REFUSE("true or false");
    }
    *out = json_is_true(value);
    return MLA_OK;
}

mla_status key_string(const json_document *doc, const json_t *object, const char *key,
                      const char **out, mla_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) {
        return REFUSE("a string");
    }
    *out = json_string_value(value);
    return MLA_OK;
}

mla_status key_object(const json_document *doc, const json_t *object, const char *key,
                      const json_t **out, mla_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_object(value)) {
        return REFUSE("an object");
    }
    *out = value;
    return MLA_OK;
}

mla_status key_array(const json_document *doc, const json_t *object, const char *key,
                     const json_t **out, mla_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_array(value)) {
        return REFUSE("an array");
    }
    *out = value;
    return MLA_OK;
}
