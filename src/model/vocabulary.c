/* vocabulary.c - the two hash tables. */
#include "model/vocabulary.h"

#include <string.h>

#define FNV_START  UINT64_C(0xcbf29ce484222325)
#define FNV_FACTOR UINT64_C(0x100000001b3)
#define MIX_FACTOR UINT64_C(0x9e3779b97f4a7c15)

/* A power of two, at least twice the number. */
static size_t num_slots_for(size_t num)
{
    size_t slots = 8;
    while (slots < 2 * num) {
        slots *= 2;
    }
    return slots;
}

static size_t hash_bytes(const char *bytes, size_t num)
{
    uint64_t hash = FNV_START;
    for (size_t i = 0; i < num; i++) {
        hash = (hash ^ (unsigned char)bytes[i]) * FNV_FACTOR;
    }
    return (size_t)(hash ^ hash >> 32);
}

static size_t hash_pair(int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key *= MIX_FACTOR;
    return (size_t)(key ^ key >> 32);
}

mla_status vocabulary_start(vocabulary *v, arena *from, int32_t num_tokens,
                            size_t num_merges, mla_error *err)
{
    void *memory = NULL;
    *v = (vocabulary){.num_tokens = num_tokens};
    v->num_slots = num_slots_for((size_t)num_tokens);
    v->num_merge_slots = num_slots_for(num_merges);
    MLAI_TRY(arena_take(from, (size_t)num_tokens, sizeof *v->tokens, "the vocabulary",
                        &memory, err));
    v->tokens = memory;
    MLAI_TRY(
        arena_take(from, v->num_slots, sizeof *v->slots, "the vocabulary", &memory, err));
    v->slots = memory;
    MLAI_TRY(arena_take(from, v->num_merge_slots, sizeof *v->merges, "the merges", &memory,
                        err));
    v->merges = memory;
    for (size_t i = 0; i < v->num_slots; i++) {
        v->slots[i] = -1;
    }
    for (size_t i = 0; i < v->num_merge_slots; i++) {
        v->merges[i].left = -1;
    }
    memset(v->id_of_byte, 0xff, sizeof v->id_of_byte); /* all -1 */
    return MLA_OK;
}

/* The slot of these bytes, or the free one where they belong. */
static int32_t *find_slot(const vocabulary *v, const char *bytes, size_t num_bytes)
{
    size_t at = hash_bytes(bytes, num_bytes) & (v->num_slots - 1);
    for (; v->slots[at] >= 0; at = (at + 1) & (v->num_slots - 1)) {
        const vocabulary_token *token = &v->tokens[v->slots[at]];
        if (token->num_bytes == num_bytes && memcmp(token->bytes, bytes, num_bytes) == 0) {
            break;
        }
    }
    return &v->slots[at];
}

bool vocabulary_add(vocabulary *v, int32_t id, vocabulary_token text)
{
    if (v->tokens[id].bytes) {
        return false;
    }
    v->tokens[id] = text;
    if (text.is_byte_level) {
        *find_slot(v, text.bytes, text.num_bytes) = id;
        if (text.num_bytes == 1) {
            v->id_of_byte[(unsigned char)text.bytes[0]] = id;
        }
    }
    return true;
}

static token_merge *find_merge_slot(const vocabulary *v, int32_t left, int32_t right)
{
    size_t at = hash_pair(left, right) & (v->num_merge_slots - 1);
    while (v->merges[at].left >= 0 &&
           (v->merges[at].left != left || v->merges[at].right != right)) {
        at = (at + 1) & (v->num_merge_slots - 1);
    }
    return &v->merges[at];
}

void vocabulary_add_merge(vocabulary *v, token_merge added)
{
    *find_merge_slot(v, added.left, added.right) = added;
}

int32_t vocabulary_find(const vocabulary *v, const char *bytes, size_t num_bytes)
{
    return *find_slot(v, bytes, num_bytes);
}

const token_merge *vocabulary_find_merge(const vocabulary *v, int32_t left, int32_t right)
{
    const token_merge *slot = find_merge_slot(v, left, right);
    return slot->left >= 0 ? slot : NULL;
}
