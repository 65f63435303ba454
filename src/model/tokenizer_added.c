/* tokenizer_added.c - "added_tokens" of tokenizer.json, and which of them begin and end a
 * text (tokenizer_config.json). */
#include <string.h>

#include "model/tokenizer_parts.h"
#include "model/utf8.h"

/* One character, or white space only: the vocabulary's way to write text, no marker of a
 * conversation. */
static bool is_ordinary(const char *text, size_t bytes)
{
    size_t length = 1;
    bool is_space = true;
    if (utf8_first_bad(text, bytes) == bytes) {
        (void)utf8_read(text, &length);
    }
    for (size_t at = 0, n; at < bytes; at += n) {
        is_space = is_space && utf8_is_white_space(utf8_read(text + at, &n));
    }
    return length == bytes || is_space;
}

static mla_status read_added(tokenizer *t, const json_document *doc, const json_t *entry,
                             added_token *out, mla_error *err)
{
    int64_t id;
    const char *content;
    MLAI_TRY(key_int(doc, entry, "id", 0, INT32_MAX / 2, &id, err));
    MLAI_TRY(key_string(doc, entry, "content", &content, err));
    size_t bytes = strlen(content);
    MLAI_CHECK(bytes > 0, MLA_ERR_CORRUPT, "%s: added token %lld is empty", doc->name,
               (long long)id);
    void *memory = NULL;
    MLAI_TRY(arena_take(&t->arena, bytes + 1, 1, "the added tokens", &memory, err));
    memcpy(memory, content, bytes);
    *out = (added_token){.bytes = memory, .num_bytes = bytes, .id = (int32_t)id};
    MLAI_TRY(key_bool(doc, entry, "lstrip", &out->takes_left_space, err));
    MLAI_TRY(key_bool(doc, entry, "rstrip", &out->takes_right_space, err));
    MLAI_TRY(key_bool(doc, entry, "single_word", &out->is_single_word, err));
    MLAI_TRY(key_bool(doc, entry, "normalized", &out->is_normalized, err));
    MLAI_TRY(key_bool(doc, entry, "special", &out->is_special, err));
    out->is_control = out->is_special || !is_ordinary(content, bytes);
    return MLA_OK;
}

mla_status tokenizer_read_added(tokenizer *t, const json_document *doc, mla_error *err)
{
    static const char word[] = "[\\p{L}\\p{M}\\p{N}\\p{Pc}]";
    const json_t *list;
    void *memory = NULL;
    MLAI_TRY(key_array(doc, doc->root, "added_tokens", &list, err));
    MLAI_TRY(arena_take(&t->arena, json_array_size(list), sizeof *t->added,
                        "the added tokens", &memory, err));
    t->added = memory;
    for (size_t i = 0; i < json_array_size(list); i++) {
        MLAI_TRY(read_added(t, doc, json_array_get(list, i), &t->added[i], err));
        t->num_added++;
    }
    MLAI_TRY(regex_compile(&t->memory, word, sizeof word - 1, &t->word, err));
    t->raw = (added_set){.is_normalized = false, .word = t->word};
    t->normalized = (added_set){.is_normalized = true, .word = t->word};
    MLAI_TRY(added_set_build(&t->arena, t->added, t->num_added, &t->raw, err));
    return added_set_build(&t->arena, t->added, t->num_added, &t->normalized, err);
}

static int32_t find_text(const tokenizer *t, const char *text)
{
    size_t bytes = strlen(text);
    for (int32_t id = 0; id < t->vocabulary.num_tokens; id++) {
        const vocabulary_token *token = &t->vocabulary.tokens[id];
        if (token->bytes && token->num_bytes == bytes &&
            memcmp(token->bytes, text, bytes) == 0) {
            return id;
        }
    }
    return -1;
}

/* null, a text, or an object that holds it as its content. */
static mla_status read_end(const tokenizer *t, const json_document *doc, const char *key,
                           int32_t *out, mla_error *err)
{
    const char *text;
    const json_t *value = json_object_get(doc->root, key);
    if (!value || json_is_null(value)) {
        return MLA_OK;
    }
    if (json_is_object(value)) {
        MLAI_TRY(key_string(doc, value, "content", &text, err));
    } else {
        MLAI_TRY(key_string(doc, doc->root, key, &text, err));
    }
    *out = find_text(t, text);
    MLAI_CHECK(*out >= 0, MLA_ERR_CORRUPT, "%s: %s \"%.60s\" is no token", doc->name, key,
               text);
    return MLA_OK;
}

mla_status tokenizer_read_ends(tokenizer *t, const json_document *doc, mla_error *err)
{
    MLAI_TRY(read_end(t, doc, "bos_token", &t->bos, err));
    MLAI_TRY(read_end(t, doc, "eos_token", &t->eos, err));
    MLAI_TRY(key_bool(doc, doc->root, "add_bos_token", &t->adds_bos, err));
    MLAI_CHECK(!t->adds_bos || t->bos >= 0, MLA_ERR_CORRUPT,
               "%s: add_bos_token is true and there is no bos_token", doc->name);
    return MLA_OK;
}
