/* profile.h - a deployment as a file: a model's config, a device, the ranks, and what is to be
 * served. docs/plan.md walks through one. */
#ifndef MLA_MODEL_PROFILE_H
#define MLA_MODEL_PROFILE_H

#include "model/weight_sizes.h"

enum {
    PROFILE_MAX_CONCURRENCY = 1 << 16,
    PROFILE_MAX_GRAPHS = 64,
    PROFILE_MAX_REMARKS = 96,
    PROFILE_INPUT_CHARS = 56,
};

/* How an input is known. */
typedef enum profile_ground {
    PROFILE_ASSUMED = 1, /* somebody's guess, with a reason */
    PROFILE_REPORTED,    /* read somewhere, with the place */
    PROFILE_DEFAULT,     /* the file says nothing */
} profile_ground;

typedef struct profile_remark {
    char input[PROFILE_INPUT_CHARS]; /* "device.memory_bytes" */
    profile_ground ground;
    const char *why;     /* NULL for a default; borrowed until profile_close */
    const json_t *value; /* the same; NULL for a default */
    int64_t fallback;    /* a default's value */
} profile_remark;

typedef enum profile_speculation {
    SPECULATION_NONE = 1,
    SPECULATION_NGRAM, /* guesses from the text; no weights */
    SPECULATION_MTP,   /* the model's own layers after the last */
    SPECULATION_MODEL, /* a drafter of its own, dense MLA */
} profile_speculation;

/* Every number of a profile, by section; the keys in the file are the same. Bytes are of one
 * rank. */
typedef struct profile_numbers {
    /* device */
    int64_t memory_bytes, threads;
    int64_t compute_major, compute_minor, multiprocessors;
    int64_t shared_unit_bytes, shared_block_bytes; /* of a multiprocessor, of a block */
    /* ranks */
    int64_t tensor, context, interleave, expert;
    /* serving */
    int64_t max_context_tokens; /* the longest request: sizes tables and workspaces */
    int64_t request_tokens;     /* what each of the requests reserves to its end */
    int64_t concurrency, page_tokens, prefill_tokens;
    int64_t kv_bytes; /* of the pool, if it is fixed; 0: as large as the requests need */
    /* speculation */
    int64_t draft_tokens, rows_per_request;
    int64_t drafter_weights_bytes, drafter_layers, drafter_latent_dim, drafter_rope_dim;
    int64_t drafter_window_tokens; /* a request's rows it keeps at most; 0: all */
    /* linear_state */
    int64_t state_value_bytes, conv_value_bytes, states_per_request;
    /* graphs */
    int64_t graph_bytes_each, graph_bytes_per_row;
    /* comm */
    int64_t communicators, communicator_bytes, channels, signal_bytes;
    /* held: what is known by measuring only */
    int64_t context_bytes, plan_bytes, binding_bytes, server_bytes, other_bytes;
} profile_numbers;

typedef struct profile {
    json_document document; /* holds all text below */
    const char *name, *device_name;
    const json_t *notes; /* an array of strings, or NULL */
    model_shape shape;
    weight_storage storage;
    mla_backend backend;
    mla_kv_format kv_format, drafter_kv_format;
    profile_speculation speculation;
    profile_numbers is;
    int32_t graph_rows[PROFILE_MAX_GRAPHS]; /* rising */
    int32_t num_graphs;
    profile_remark remarks[PROFILE_MAX_REMARKS];
    int32_t num_remarks;
} profile;

/* text: read. name: for errors, borrowed until profile_close. An unknown key, a value of the
 * wrong type or out of its range: MLA_ERR_CORRUPT with both. out: owned, profile_close; all 0
 * where it failed. */
mla_status profile_parse(mlai_ledger *ledger, const char *name, const char *text,
                         size_t bytes, profile *out, mla_error *err);

/* The same from the file `name` of the directory `dir`. */
mla_status profile_read(mlai_ledger *ledger, const char *dir, const char *name,
                        profile *out, mla_error *err);
void profile_close(profile *self); /* all 0 is allowed */

#endif
