/* profile_numbers.c - the table of a profile's numbers. */
#include "model/profile_parts.h"

#include <string.h>

#define BYTES_LIMIT (INT64_C(1) << 50)

enum { MAX_RANKS = 1024, MAX_TOKENS = INT32_MAX, MAX_ROWS = 1 << 20 };
enum { REQUIRED = -1, DERIVED = -2 }; /* as a fallback */

typedef struct number_key {
    const char *section, *key;
    size_t offset; /* of an int64_t in profile_numbers */
    int64_t min, max;
    int64_t fallback; /* where it is absent; DERIVED: 0, until others are known */
} number_key;

#define AT(field) offsetof(profile_numbers, field)

/* clang-format off */
static const number_key keys[] = {
    {"device", "memory_bytes", AT(memory_bytes), 1, BYTES_LIMIT, REQUIRED},
    {"device", "threads", AT(threads), 1, 1024, 1},
    {"device", "compute_major", AT(compute_major), 0, 99, 0},
    {"device", "compute_minor", AT(compute_minor), 0, 9, 0},
    {"device", "multiprocessors", AT(multiprocessors), 0, 4096, 0},
    {"device", "shared_unit_bytes", AT(shared_unit_bytes), 0, 1 << 24, 0},
    {"device", "shared_block_bytes", AT(shared_block_bytes), 0, 1 << 24, 0},
    {"ranks", "tensor", AT(tensor), 1, MAX_RANKS, 1},
    {"ranks", "context", AT(context), 1, MAX_RANKS, 1},
    {"ranks", "interleave", AT(interleave), 1, 1 << 16, 1},
    {"ranks", "expert", AT(expert), 1, MAX_RANKS, 1},
    {"serving", "max_context_tokens", AT(max_context_tokens), 1, MAX_TOKENS, REQUIRED},
    {"serving", "request_tokens", AT(request_tokens), 1, MAX_TOKENS, DERIVED},
    {"serving", "concurrency", AT(concurrency), 1, PROFILE_MAX_CONCURRENCY, REQUIRED},
    {"serving", "page_tokens", AT(page_tokens), 1, 1 << 16, 64},
    {"serving", "prefill_tokens", AT(prefill_tokens), 1, MAX_ROWS, 256},
    {"serving", "kv_bytes", AT(kv_bytes), 1, BYTES_LIMIT, DERIVED},
    {"speculation", "draft_tokens", AT(draft_tokens), 0, 64, 0},
    {"speculation", "rows_per_request", AT(rows_per_request), 1, 256, DERIVED},
    {"speculation", "weights_bytes", AT(drafter_weights_bytes), 0, BYTES_LIMIT, 0},
    {"speculation", "layers", AT(drafter_layers), 0, 1024, 0},
    {"speculation", "latent_dim", AT(drafter_latent_dim), 0, 1 << 16, 0},
    {"speculation", "rope_dim", AT(drafter_rope_dim), 0, 1 << 16, 0},
    {"speculation", "window_tokens", AT(drafter_window_tokens), 0, MAX_TOKENS, 0},
    {"linear_state", "value_bytes", AT(state_value_bytes), 1, 8, 4},
    {"linear_state", "conv_value_bytes", AT(conv_value_bytes), 1, 8, 2},
    {"linear_state", "states_per_request", AT(states_per_request), 1, 256, 1},
    {"graphs", "bytes_each", AT(graph_bytes_each), 0, BYTES_LIMIT, 0},
    {"graphs", "bytes_per_row", AT(graph_bytes_per_row), 0, BYTES_LIMIT, 0},
    {"comm", "communicators", AT(communicators), 0, 1024, 0},
    {"comm", "communicator_bytes", AT(communicator_bytes), 0, BYTES_LIMIT, 0},
    {"comm", "channels", AT(channels), 0, 64, 0},
    {"comm", "signal_bytes", AT(signal_bytes), 0, BYTES_LIMIT, 0},
    {"held", "context_bytes", AT(context_bytes), 0, BYTES_LIMIT, 0},
    {"held", "plan_bytes", AT(plan_bytes), 0, BYTES_LIMIT, 0},
    {"held", "binding_bytes", AT(binding_bytes), 0, BYTES_LIMIT, 0},
    {"held", "server_bytes", AT(server_bytes), 0, BYTES_LIMIT, 0},
    {"held", "other_bytes", AT(other_bytes), 0, BYTES_LIMIT, 0},
};
/* clang-format on */
enum { NUM_KEYS = sizeof keys / sizeof keys[0] };

bool profile_is_number(const char *section, const char *key)
{
    for (int i = 0; i < NUM_KEYS; i++) {
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_in(const number_key *key, const char *section)
{
    return strcmp(key->section, section) == 0;
}

/* Whether anything is computed from it in this profile. Sections are read in the table's order,
 * and words before numbers. */
static bool does_matter(const profile *self, const number_key *key)
{
    bool is_cuda = self->backend == MLA_BACKEND_CUDA;
    if (is_in(key, "device")) {
        return (key->offset != AT(threads)) == is_cuda;
    }
    if (is_in(key, "speculation")) {
        return self->speculation == SPECULATION_MODEL ||
               (self->speculation != SPECULATION_NONE && key->offset == AT(draft_tokens));
    }
    if (is_in(key, "linear_state")) {
        return self->shape.kda.num_layers > 0;
    }
    if (is_in(key, "graphs")) {
        return json_object_get(json_object_get(self->document.root, "graphs"), "rows");
    }
    return !is_in(key, "comm") || self->is.tensor > 1;
}

static mla_status read_number(profile *self, const number_key *key, mla_error *err)
{
    const char *file = self->document.name;
    const json_t *value;
    int64_t number = key->fallback;
    MLAI_TRY(profile_find(self, key->section, key->key, &value, err));
    if (value) {
        MLAI_CHECK(json_is_integer(value), MLA_ERR_CORRUPT,
                   "%s: %s.%s is %s and should be an integer", file, key->section, key->key,
                   json_words_of(value).text);
        number = json_integer_value(value);
        MLAI_CHECK(key->min <= number && number <= key->max, MLA_ERR_CORRUPT,
                   "%s: %s.%s is %lld, outside %lld to %lld", file, key->section, key->key,
                   (long long)number, (long long)key->min, (long long)key->max);
    } else {
        MLAI_CHECK(number != REQUIRED, MLA_ERR_CORRUPT, "%s: %s.%s is missing", file,
                   key->section, key->key);
        bool is_derived = number == DERIVED;
        number = is_derived ? 0 : number;
        if (!is_derived && does_matter(self, key)) {
            MLAI_TRY(profile_remark_default(self, key->section, key->key, number, err));
        }
    }
    memcpy((char *)&self->is + key->offset, &number, sizeof number);
    return MLA_OK;
}

mla_status profile_read_numbers(profile *self, mla_error *err)
{
    for (int i = 0; i < NUM_KEYS; i++) {
        MLAI_TRY(read_number(self, &keys[i], err));
    }
    return MLA_OK;
}
