/* vocabulary.h - the tables of a byte-level BPE: what bytes a token is, which token bytes
 * are, and which pairs of tokens merge, in what order. Read-only once built.
 *
 * Two hash tables with open addressing, never more than half full: the lookups of a pair are
 * the inner loop of encoding, and a search by halves would take 17 steps where this takes
 * one or two. */
#ifndef MLA_MODEL_VOCABULARY_H
#define MLA_MODEL_VOCABULARY_H

#include "model/arena.h"

typedef struct vocabulary_token {
    const char *bytes; /* NULL: no token has this id */
    uint32_t num_bytes;
    bool is_special;
    bool is_byte_level; /* made of bytes; else found as an added token only */
} vocabulary_token;

typedef struct token_merge {
    int32_t left, right;
    int32_t rank; /* lower ones are merged first */
    int32_t result;
} token_merge;

typedef struct vocabulary {
    vocabulary_token *tokens; /* [num_tokens], by id */
    int32_t num_tokens;       /* the largest id + 1 */
    int32_t *slots;           /* [num_slots]: id, or -1 */
    size_t num_slots;
    token_merge *merges; /* [num_merge_slots]; left -1: free */
    size_t num_merge_slots;
    int32_t id_of_byte[256];
} vocabulary;

/* Room for ids below num_tokens. Everything is in the arena. */
mla_status vocabulary_start(vocabulary *v, arena *from, int32_t num_tokens,
                            size_t num_merges, mla_error *err);

/* text: in the arena. false where the id is taken. */
bool vocabulary_add(vocabulary *v, int32_t id, vocabulary_token text);

/* A later merge of the same pair replaces the earlier. */
void vocabulary_add_merge(vocabulary *v, token_merge added);

/* The byte-level token of these bytes, -1: none. */
int32_t vocabulary_find(const vocabulary *v, const char *bytes, size_t num_bytes);

/* NULL: the two do not merge. */
const token_merge *vocabulary_find_merge(const vocabulary *v, int32_t left, int32_t right);

#endif
