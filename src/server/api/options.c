/* options.c - the fields that are single values: see options.h. */
#include "server/api/options.h"

#include <limits.h>
#include <string.h>

#include "server/api/option_lists.h"

static const double max_temperature = 2;
static const double max_penalty = 2; /* either side of 0 */
static const double max_repetition = 10;
static const double least_repetition = 1e-3;
static const float least_top_p =
    1e-9F; /* for 0: the likeliest alone. The engine's 0 is all */
enum { MAX_SALT_BYTES = 1024 };

static bool read_sampling(const api_fields *fields, const api_defaults *defaults,
                          engine_request *each)
{
    sampling_options *sampling = &each->sampling;
    int64_t top_k = defaults->top_k;
    *sampling = (sampling_options){.temperature = defaults->temperature,
                                   .top_p = defaults->top_p,
                                   .min_p = defaults->min_p};
    if (!field_real(fields, "temperature", 0, max_temperature, &sampling->temperature) ||
        !field_real(fields, "top_p", 0, 1, &sampling->top_p) ||
        !field_real(fields, "min_p", 0, 1, &sampling->min_p) ||
        !field_int(fields, "top_k", -1, INT_MAX, &top_k)) {
        return false;
    }
    sampling->top_k = top_k > 0 ? (int32_t)top_k : 0;
    sampling->top_p = sampling->top_p > least_top_p ? sampling->top_p : least_top_p;
    return true;
}

static bool read_penalties(const api_fields *fields, const api_defaults *defaults,
                           engine_penalties *out)
{
    *out = (engine_penalties){.repetition = defaults->repetition_penalty};
    return field_real(fields, "repetition_penalty", least_repetition, max_repetition,
                      &out->repetition) &&
           field_real(fields, "presence_penalty", -max_penalty, max_penalty,
                      &out->presence) &&
           field_real(fields, "frequency_penalty", -max_penalty, max_penalty,
                      &out->frequency);
}

/* The newer name goes before the older one. */
static bool read_lengths(const api_fields *fields, engine_request *each)
{
    return field_int(fields, "max_tokens", 1, INT_MAX, &each->max_tokens) &&
           field_int(fields, "max_completion_tokens", 1, INT_MAX, &each->max_tokens) &&
           field_int(fields, "min_tokens", 0, INT_MAX, &each->min_tokens);
}

static bool read_flags(const api_fields *fields, engine_request *each)
{
    bool skips_special = true;
    int64_t priority = 0;
    if (!field_bool(fields, "include_stop_str_in_output", &each->keeps_stop) ||
        !field_bool(fields, "ignore_eos", &each->ignores_eos) ||
        !field_bool(fields, "skip_special_tokens", &skips_special) ||
        !field_int(fields, "priority", -ENGINE_MAX_PRIORITY, ENGINE_MAX_PRIORITY,
                   &priority)) {
        return false;
    }
    each->keeps_special = !skips_special;
    each->priority = (int32_t)priority;
    return true;
}

static bool read_chat_logprobs(const api_fields *fields, engine_request *each)
{
    int64_t num_top = 0;
    if (!field_bool(fields, "logprobs", &each->wants_logprobs) ||
        !field_int(fields, "top_logprobs", 0, ENGINE_MAX_LOGPROBS, &num_top)) {
        return false;
    }
    if (num_top > 0 && !each->wants_logprobs) {
        return api_fail(fields->failure, API_BAD_REQUEST, "top_logprobs", NULL,
                        "top_logprobs is %lld, which needs logprobs to be true",
                        (long long)num_top);
    }
    each->num_top_logprobs = (int32_t)num_top;
    return true;
}

static bool read_completion_logprobs(const api_fields *fields, engine_request *each)
{
    int64_t num_top = -1;
    if (!field_int(fields, "logprobs", 0, ENGINE_MAX_LOGPROBS, &num_top)) {
        return false;
    }
    each->wants_logprobs = num_top >= 0;
    each->num_top_logprobs = num_top > 0 ? (int32_t)num_top : 0;
    return true;
}

static bool read_echo(const api_fields *fields, api_options *out)
{
    if (!field_bool(fields, "echo", &out->is_echo)) {
        return false;
    }
    if (out->is_echo && out->each.wants_logprobs) {
        return api_fail(fields->failure, API_BAD_REQUEST, "echo", "unsupported_parameter",
                        "echo with logprobs needs those of the prompt, which are not "
                        "supported by this server");
    }
    return true;
}

/* best_of: as many as are given back, so that none is thrown away. */
static bool read_num_choices(const api_fields *fields, api_options *out)
{
    int64_t num = 1;
    int64_t best_of = 0;
    if (!field_int(fields, "n", 1, API_MAX_CHOICES, &num) ||
        !field_int(fields, "best_of", 1, API_MAX_CHOICES, &best_of)) {
        return false;
    }
    if (best_of && best_of != num) {
        return api_fail(fields->failure, API_BAD_REQUEST, "best_of",
                        "unsupported_parameter",
                        "best_of is %lld and n is %lld; only equal ones are supported by "
                        "this server",
                        (long long)best_of, (long long)num);
    }
    out->num_choices = (int32_t)num;
    return true;
}

static bool read_stream(const api_fields *fields, api_options *out)
{
    const json_t *object = NULL;
    if (!field_bool(fields, "stream", &out->is_stream) ||
        !field_object(fields, "stream_options", &object)) {
        return false;
    }
    if (object && !out->is_stream) {
        return api_fail(fields->failure, API_BAD_REQUEST, "stream_options", NULL,
                        "stream_options is given, which needs stream to be true");
    }
    const api_fields options = {object, "stream_options.", fields->failure};
    return field_bool(&options, "include_usage", &out->has_usage) &&
           field_bool(&options, "continuous_usage_stats", &out->has_running_usage);
}

/* FNV-1a, mixed; 0 means no salt, so no salt becomes it. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

static bool read_salt(const api_fields *fields, engine_request *each)
{
    const char *salt = NULL;
    if (!field_string(fields, "cache_salt", MAX_SALT_BYTES, &salt)) {
        return false;
    }
    if (salt && salt[0] == 0) {
        return field_refuse(fields, "cache_salt",
                            json_object_get(fields->object, "cache_salt"),
                            "a string of at least one byte");
    }
    each->cache_salt = salt ? hash_of(salt) : 0;
    return true;
}

static bool read_request_id(const api_fields *fields, api_memory *memory, api_options *out)
{
    const char *id = NULL;
    mla_error err = {0};
    if (!field_string(fields, "request_id", API_MAX_ID_BYTES, &id)) {
        return false;
    }
    if (!id || !id[0]) {
        return true;
    }
    if (api_memory_copy(memory, id, strlen(id), &out->request_id, &err) != MLA_OK) {
        return api_fail_of(fields->failure, &err, NULL);
    }
    return true;
}

static bool read_seed(const api_fields *fields, api_options *out)
{
    int64_t seed = 0;
    out->has_seed = field_value(fields, "seed") != NULL;
    if (!field_int(fields, "seed", INT64_MIN, INT64_MAX, &seed)) {
        return false;
    }
    out->seed = (uint64_t)seed;
    return true;
}

bool api_options_read(const api_settings *settings, api_kind kind, const api_fields *fields,
                      api_memory *memory, api_options *out)
{
    engine_request *each = &out->each;
    memset(out, 0, sizeof *out);
    return read_stream(fields, out) && read_num_choices(fields, out) &&
           read_sampling(fields, &settings->defaults, each) &&
           read_penalties(fields, &settings->defaults, &each->penalties) &&
           read_lengths(fields, each) && read_flags(fields, each) &&
           read_seed(fields, out) && read_salt(fields, each) &&
           (kind == API_CHAT
                ? read_chat_logprobs(fields, each)
                : read_completion_logprobs(fields, each) && read_echo(fields, out)) &&
           field_bool(fields, "return_token_ids", &out->returns_ids) &&
           read_request_id(fields, memory, out) &&
           option_lists_read(settings, fields, memory, each);
}
