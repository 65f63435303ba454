/* tokenizer_model.c - "model" of tokenizer.json: the vocabulary and the merges. */
#include <string.h>

#include "model/byte_level.h"
#include "model/tokenizer_parts.h"

enum { MAX_TOKEN_BYTES = 1 << 16, SPARE_IDS = 1024 };

static mla_status check_features(const json_document *doc, const json_t *model,
                                 mla_error *err)
{
    const char *type;
    MLAI_TRY(key_string(doc, model, "type", &type, err));
    MLAI_CHECK(strcmp(type, "BPE") == 0, MLA_ERR_UNSUPPORTED,
               "%s: model type \"%.40s\" is not supported; supported: BPE", doc->name,
               type);
    static const char *const absent[] = {"dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix", "byte_fallback"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        const json_t *value = json_object_get(model, absent[i]);
        bool is_off = !value || json_is_null(value) || json_is_false(value) ||
                      (json_is_string(value) && json_string_length(value) == 0) ||
                      (json_is_number(value) && !(json_number_value(value) > 0));
        MLAI_CHECK(is_off, MLA_ERR_UNSUPPORTED, "%s: model %s %s is not supported",
                   doc->name, absent[i], json_words_of(value).text);
    }
    return MLA_OK;
}

/* The table of tokens is as long as the largest id; a file may leave holes, but not decide
 * how much memory is taken. */
static mla_status check_id(const json_document *doc, const char *text, const json_t *id,
                           size_t num_entries, mla_error *err)
{
    int64_t limit = 2 * (int64_t)num_entries + SPARE_IDS;
    MLAI_CHECK(json_is_integer(id) && json_integer_value(id) >= 0 &&
                   json_integer_value(id) < limit,
               MLA_ERR_CORRUPT,
               "%s: token \"%.60s\" has id %s, outside 0 to %lld for %zu tokens", doc->name,
               text, json_words_of(id).text, (long long)limit - 1, num_entries);
    return MLA_OK;
}

typedef struct token_counts {
    int32_t num_tokens;  /* the largest id + 1 */
    size_t longest_text; /* in bytes */
} token_counts;

static mla_status count(const tokenizer *t, const json_document *doc, json_t *vocab,
                        token_counts *out, mla_error *err)
{
    size_t num_entries = json_object_size(vocab) + t->num_added;
    token_counts seen = {.longest_text = 1};
    for (void *at = json_object_iter(vocab); at; at = json_object_iter_next(vocab, at)) {
        const char *text = json_object_iter_key(at);
        const json_t *id = json_object_iter_value(at);
        size_t bytes = strlen(text);
        MLAI_TRY(check_id(doc, text, id, num_entries, err));
        MLAI_CHECK(bytes <= MAX_TOKEN_BYTES, MLA_ERR_UNSUPPORTED,
                   "%s: token %lld has %zu bytes, and at most %d are read", doc->name,
                   (long long)json_integer_value(id), bytes, MAX_TOKEN_BYTES);
        int32_t num = (int32_t)json_integer_value(id) + 1;
        seen.num_tokens = num > seen.num_tokens ? num : seen.num_tokens;
        seen.longest_text = bytes > seen.longest_text ? bytes : seen.longest_text;
    }
    for (size_t i = 0; i < t->num_added; i++) {
        int32_t num = t->added[i].id + 1;
        MLAI_CHECK(t->added[i].id < 2 * (int64_t)num_entries + SPARE_IDS, MLA_ERR_CORRUPT,
                   "%s: added token \"%.60s\" has id %d, too far beyond %zu tokens",
                   doc->name, t->added[i].bytes, t->added[i].id, num_entries);
        seen.num_tokens = num > seen.num_tokens ? num : seen.num_tokens;
    }
    *out = seen;
    return MLA_OK;
}

static mla_status add_token(tokenizer *t, const json_document *doc, const char *text,
                            int32_t id, mla_error *err)
{
    size_t bytes = strlen(text);
    size_t num_bytes = 0;
    void *memory = NULL;
    MLAI_TRY(arena_take(&t->arena, bytes + 1, 1, "the texts of tokens", &memory, err));
    bool is_byte_level = bytes > 0 && byte_level_decode(text, bytes, memory, &num_bytes);
    if (!is_byte_level) { /* then its text is its bytes */
        memcpy(memory, text, bytes);
        num_bytes = bytes;
    }
    const vocabulary_token token = {
        .bytes = memory, .num_bytes = (uint32_t)num_bytes, .is_byte_level = is_byte_level};
    MLAI_CHECK(vocabulary_add(&t->vocabulary, id, token), MLA_ERR_CORRUPT,
               "%s: token \"%.60s\" has id %d, which another token has", doc->name, text,
               id);
    return MLA_OK;
}

/* Some vocabularies have no token for the bytes that no text holds. */
static bool occurs_in_utf8(int byte)
{
    return byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
}

static mla_status add_vocabulary(tokenizer *t, const json_document *doc, json_t *vocab,
                                 mla_error *err)
{
    for (void *at = json_object_iter(vocab); at; at = json_object_iter_next(vocab, at)) {
        int32_t id = (int32_t)json_integer_value(json_object_iter_value(at));
        MLAI_TRY(add_token(t, doc, json_object_iter_key(at), id, err));
    }
    for (int byte = 0; byte < 256; byte++) {
        MLAI_CHECK(t->vocabulary.id_of_byte[byte] >= 0 || !occurs_in_utf8(byte),
                   MLA_ERR_UNSUPPORTED,
                   "%s: byte 0x%02x has no token: this is no byte-level BPE", doc->name,
                   (unsigned)byte);
    }
    return MLA_OK;
}

/* An added token may be in the vocabulary, too: then with the same id and text. */
static mla_status add_added(tokenizer *t, const json_document *doc, mla_error *err)
{
    for (size_t i = 0; i < t->num_added; i++) {
        const added_token *added = &t->added[i];
        const vocabulary_token token = {.bytes = added->bytes,
                                        .num_bytes = (uint32_t)added->num_bytes};
        vocabulary_token *there = &t->vocabulary.tokens[added->id];
        if (!vocabulary_add(&t->vocabulary, added->id, token)) {
            MLAI_CHECK(there->num_bytes == added->num_bytes &&
                           memcmp(there->bytes, added->bytes, added->num_bytes) == 0,
                       MLA_ERR_CORRUPT,
                       "%s: added token \"%.60s\" has id %d, which another token has",
                       doc->name, added->bytes, added->id);
        }
        there->is_special = added->is_special;
    }
    return MLA_OK;
}

/* "a b" or ["a", "b"]. */
typedef struct merge_words {
    const char *left, *right;
    size_t left_bytes, right_bytes;
} merge_words;

static bool words_of(const json_t *entry, merge_words *out)
{
    if (json_is_string(entry)) {
        const char *text = json_string_value(entry);
        const char *space = strchr(text, ' ');
        if (!space) {
            return false;
        }
        *out = (merge_words){text, space + 1, (size_t)(space - text), strlen(space + 1)};
        return true;
    }
    const json_t *left = json_array_get(entry, 0);
    const json_t *right = json_array_get(entry, 1);
    if (json_array_size(entry) != 2 || !json_is_string(left) || !json_is_string(right)) {
        return false;
    }
    *out = (merge_words){json_string_value(left), json_string_value(right),
                         json_string_length(left), json_string_length(right)};
    return true;
}

/* scratch: [2 * longest]. */
static bool resolve_merge(const vocabulary *v, const merge_words *words, char *scratch,
                          size_t longest, token_merge *out)
{
    size_t left = 0;
    size_t right = 0;
    if (words->left_bytes > longest || words->right_bytes > longest ||
        !byte_level_decode(words->left, words->left_bytes, scratch, &left) ||
        !byte_level_decode(words->right, words->right_bytes, scratch + left, &right)) {
        return false;
    }
    out->left = vocabulary_find(v, scratch, left);
    out->right = vocabulary_find(v, scratch + left, right);
    out->result = vocabulary_find(v, scratch, left + right);
    return out->left >= 0 && out->right >= 0 && out->result >= 0;
}

static mla_status add_merges(tokenizer *t, const json_document *doc, const json_t *merges,
                             size_t longest, mla_error *err)
{
    void *scratch = NULL;
    MLAI_TRY(arena_take(&t->arena, 2 * longest, 1, "a merge", &scratch, err));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *entry = json_array_get(merges, i);
        merge_words words;
        token_merge merge = {.rank = (int32_t)i};
        MLAI_CHECK(words_of(entry, &words), MLA_ERR_CORRUPT,
                   "%s: merge %zu is %s and should be two tokens", doc->name, i,
                   json_words_of(entry).text);
        MLAI_CHECK(resolve_merge(&t->vocabulary, &words, scratch, longest, &merge),
                   MLA_ERR_CORRUPT,
                   "%s: merge %zu, \"%.40s\" with \"%.40s\", is not of tokens", doc->name,
                   i, words.left, words.right);
        vocabulary_add_merge(&t->vocabulary, merge);
    }
    return MLA_OK;
}

mla_status tokenizer_read_model(tokenizer *t, const json_document *doc, mla_error *err)
{
    const json_t *model;
    const json_t *merges;
    token_counts counts = {0};
    MLAI_TRY(key_object(doc, doc->root, "model", &model, err));
    MLAI_TRY(check_features(doc, model, err));
    MLAI_TRY(key_bool(doc, model, "ignore_merges", &t->ignores_merges, err));
    json_t *vocab = json_object_get(model, "vocab");
    MLAI_CHECK(json_is_object(vocab), MLA_ERR_CORRUPT,
               "%s: vocab is %s and should be an object", doc->name,
               json_words_of(vocab).text);
    MLAI_TRY(key_array(doc, model, "merges", &merges, err));
    MLAI_TRY(count(t, doc, vocab, &counts, err));
    MLAI_TRY(vocabulary_start(&t->vocabulary, &t->arena, counts.num_tokens,
                              json_array_size(merges), err));
    MLAI_TRY(add_vocabulary(t, doc, vocab, err));
    MLAI_TRY(add_added(t, doc, err));
    return add_merges(t, doc, merges, counts.longest_text, err);
}
