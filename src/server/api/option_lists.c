/* option_lists.c - stop strings, stop ids and biases, copied into a call's memory. */
#include "server/api/option_lists.h"

#include <stdio.h>
#include <string.h>

enum { RULE_BYTES = 80, NAME_BYTES = 48, DECIMAL = 10, MAX_DIGITS = 9 };
static const double max_bias = 100;

static bool take(const api_fields *fields, api_memory *memory, size_t num,
                 size_t item_bytes, void **out)
{
    mla_error err = {0};
    return api_memory_take(memory, num, item_bytes, "a list of a request", out, &err) ==
               MLA_OK ||
           api_fail_of(fields->failure, &err, NULL);
}

static bool refuse_item(const api_fields *fields, const char *name, size_t i,
                        const json_t *value, const char *rule)
{
    char item[NAME_BYTES];
    (void)snprintf(item, sizeof item, "%s[%zu]", name, i);
    return field_refuse(fields, item, value, rule);
}

static bool check_num(const api_fields *fields, const char *name, size_t num, size_t max)
{
    return num <= max || api_fail(fields->failure, API_BAD_REQUEST, name, NULL,
                                  "%s has %zu entries; %zu at most", name, num, max);
}

static bool copy_stop(const api_fields *fields, const json_t *value, size_t i,
                      api_memory *memory, engine_text *out)
{
    char rule[RULE_BYTES];
    mla_error err = {0};
    size_t bytes = json_string_length(value);
    if (!json_is_string(value) || bytes < 1 || bytes > ENGINE_MAX_STOP_BYTES) {
        (void)snprintf(rule, sizeof rule, "a string of 1 to %d bytes",
                       ENGINE_MAX_STOP_BYTES);
        return refuse_item(fields, "stop", i, value, rule);
    }
    out->bytes = bytes;
    return api_memory_copy(memory, json_string_value(value), bytes, &out->data, &err) ==
               MLA_OK ||
           api_fail_of(fields->failure, &err, NULL);
}

/* A string, or an array of them. */
static bool read_stops(const api_fields *fields, api_memory *memory, engine_request *each)
{
    const json_t *value = field_value(fields, "stop");
    bool is_one = json_is_string(value);
    size_t num = is_one ? 1 : json_array_size(value);
    void *stops = NULL;
    if (!value || (json_is_array(value) && num == 0)) {
        return true;
    }
    if (!is_one && !json_is_array(value)) {
        return field_refuse(fields, "stop", value, "a string or an array of strings");
    }
    if (!check_num(fields, "stop", num, ENGINE_MAX_STOPS) ||
        !take(fields, memory, num, sizeof(engine_text), &stops)) {
        return false;
    }
    for (size_t i = 0; i < num; i++) {
        const json_t *stop = is_one ? value : json_array_get(value, i);
        if (!copy_stop(fields, stop, i, memory, (engine_text *)stops + i)) {
            return false;
        }
    }
    each->stops = stops;
    each->num_stops = (int32_t)num;
    return true;
}

bool option_ids_read(const api_settings *settings, const api_fields *fields,
                     const char *name, const json_t *array, api_memory *memory,
                     const int32_t **out)
{
    int32_t last = engine_limits_of(settings->engine)->vocab_size - 1;
    size_t num = json_array_size(array);
    char rule[RULE_BYTES];
    void *ids = NULL;
    if (!take(fields, memory, num, sizeof(int32_t), &ids)) {
        return false;
    }
    for (size_t i = 0; i < num; i++) {
        const json_t *value = json_array_get(array, i);
        int64_t id = 0;
        if (!json_as_int(value, 0, last, &id)) {
            (void)snprintf(rule, sizeof rule, "a token id from 0 to %d", last);
            return refuse_item(fields, name, i, value, rule);
        }
        ((int32_t *)ids)[i] = (int32_t)id;
    }
    *out = ids;
    return true;
}

static bool read_stop_ids(const api_settings *settings, const api_fields *fields,
                          api_memory *memory, engine_request *each)
{
    const json_t *array = NULL;
    if (!field_array(fields, "stop_token_ids", &array)) {
        return false;
    }
    size_t num = json_array_size(array);
    if (num == 0) {
        return true;
    }
    each->num_stop_ids = (int32_t)num;
    return check_num(fields, "stop_token_ids", num, ENGINE_MAX_STOP_IDS) &&
           option_ids_read(settings, fields, "stop_token_ids", array, memory,
                           &each->stop_ids);
}

/* The key of a bias: decimal digits and nothing else. -1: it is no id. */
static int64_t id_of(const char *key)
{
    int64_t id = 0;
    size_t num = strlen(key);
    if (num < 1 || num > MAX_DIGITS) {
        return -1;
    }
    for (; *key; key++) {
        if (*key < '0' || *key > '9') {
            return -1;
        }
        id = id * DECIMAL + (*key - '0');
    }
    return id;
}

static bool read_bias(const api_settings *settings, const api_fields *fields,
                      const char *key, const json_t *value, engine_bias *out)
{
    const int32_t vocab_size = engine_limits_of(settings->engine)->vocab_size;
    double bias = json_number_value(value);
    int64_t id = id_of(key);
    if (id < 0 || id >= vocab_size) {
        return api_fail(
            fields->failure, API_BAD_REQUEST, "logit_bias", NULL,
            "logit_bias has the key \"%.40s\"; it must be a token id from 0 to %d", key,
            vocab_size - 1);
    }
    if (!json_is_number(value) || bias < -max_bias || bias > max_bias) {
        return api_fail(fields->failure, API_BAD_REQUEST, "logit_bias", NULL,
                        "logit_bias of token %lld is %s; it must be a number from %g to %g",
                        (long long)id, json_words_of(value).text, -max_bias, max_bias);
    }
    *out = (engine_bias){.id = (int32_t)id, .bias = (float)bias};
    return true;
}

static bool read_biases(const api_settings *settings, const api_fields *fields,
                        api_memory *memory, engine_request *each)
{
    const json_t *object = NULL;
    void *biases = NULL;
    if (!field_object(fields, "logit_bias", &object)) {
        return false;
    }
    size_t num = json_object_size(object);
    if (num == 0) {
        return true;
    }
    if (!check_num(fields, "logit_bias", num, ENGINE_MAX_BIASES) ||
        !take(fields, memory, num, sizeof(engine_bias), &biases)) {
        return false;
    }
    engine_bias *next = biases;
    void *at = json_object_iter((json_t *)(uintptr_t)object); /* which it only reads */
    for (; at; at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
        if (!read_bias(settings, fields, json_object_iter_key(at),
                       json_object_iter_value(at), next++)) {
            return false;
        }
    }
    each->biases = biases;
    each->num_biases = (int32_t)num;
    return true;
}

bool option_lists_read(const api_settings *settings, const api_fields *fields,
                       api_memory *memory, engine_request *each)
{
    return read_stops(fields, memory, each) &&
           read_stop_ids(settings, fields, memory, each) &&
           read_biases(settings, fields, memory, each);
}
