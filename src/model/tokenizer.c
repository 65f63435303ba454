/* tokenizer.c - text becomes token ids: added tokens first, then pieces, then merges. */
#include "model/tokenizer.h"

#include <string.h>

#include "attention/context.h"
#include "model/bpe.h"
#include "model/tokenizer_parts.h"
#include "model/utf8.h"

enum { MIN_IDS = 64, MAX_TEXT_BYTES = 1 << 30 };

typedef struct encoder {
    const tokenizer *t;
    token_list *out;
    const char *text;           /* all of it */
    const unsigned char *marks; /* of it, or NULL */
    regex_matcher matcher;
    bpe_scratch scratch;
} encoder;

static size_t list_bytes(size_t num)
{
    return num * sizeof(int32_t);
}

void token_list_free(token_list *list)
{
    if (list->ids) {
        mlai_ledger_give(mlai_context_ledger(list->context), MLA_SPACE_HOST, MLA_FOR_SERVER,
                         list_bytes(list->capacity), list->ids);
    }
    *list = (token_list){0};
}

/* Room for `more` ids after those that are there. */
static mla_status reserve(token_list *list, size_t more, mla_error *err)
{
    if (more <= list->capacity - list->num) {
        return MLA_OK;
    }
    size_t capacity = list->num + more;
    capacity = capacity < MIN_IDS ? MIN_IDS : capacity + capacity / 2;
    void *ids = NULL;
    mlai_ledger *ledger = mlai_context_ledger(list->context);
    MLAI_TRY(mlai_ledger_take(ledger, MLA_SPACE_HOST, MLA_FOR_SERVER, list_bytes(capacity),
                              sizeof(int32_t), "token ids", &ids, err));
    if (list->ids) {
        memcpy(ids, list->ids, list_bytes(list->num));
        mlai_ledger_give(ledger, MLA_SPACE_HOST, MLA_FOR_SERVER, list_bytes(list->capacity),
                         list->ids);
    }
    list->ids = ids;
    list->capacity = capacity;
    return MLA_OK;
}

static mla_status append(token_list *list, int32_t id, mla_error *err)
{
    MLAI_TRY(reserve(list, 1, err));
    list->ids[list->num++] = id;
    return MLA_OK;
}

/* With marked text, a piece that reads like a control token may not become it by way of the
 * vocabulary either. */
static bool may_be(const encoder *e, const char *text, int32_t id)
{
    const tokenizer *t = e->t;
    unsigned char first = (unsigned char)text[0];
    bool is_suspect = e->marks && (t->raw.is_start[first] || t->normalized.is_start[first]);
    for (size_t i = 0; is_suspect && i < t->num_added; i++) {
        if (t->added[i].id == id && t->added[i].is_control) {
            return false;
        }
    }
    return true;
}

static mla_status encode_piece(encoder *e, const char *text, size_t bytes, mla_error *err)
{
    const vocabulary *v = &e->t->vocabulary;
    int32_t whole = e->t->ignores_merges ? vocabulary_find(v, text, bytes) : -1;
    if (whole >= 0 && may_be(e, text, whole)) {
        return append(e->out, whole, err);
    }
    size_t num = 0;
    MLAI_TRY(reserve(e->out, bytes, err));
    MLAI_TRY(bpe_encode(v, &e->scratch, text, bytes, e->out->ids + e->out->num, &num, err));
    e->out->num += num;
    return MLA_OK;
}

/* Cuts by the pattern of this level and what it leaves by the next one's: each pattern sees
 * one piece and nothing around it. NOLINTNEXTLINE(misc-no-recursion): at most
 * TOKENIZER_MAX_SPLITS deep. */
static mla_status split(encoder *e, int32_t level, const char *text, size_t bytes,
                        mla_error *err)
{
    if (bytes == 0) {
        return MLA_OK;
    }
    if (level == e->t->num_splits) {
        return encode_piece(e, text, bytes, err);
    }
    for (size_t at = 0; at < bytes;) {
        regex_match match;
        MLAI_TRY(
            regex_find(&e->matcher, e->t->splits[level], text, bytes, at, &match, err));
        MLAI_TRY(split(e, level + 1, text + at, match.begin - at, err));
        MLAI_TRY(split(e, level + 1, text + match.begin, match.end - match.begin, err));
        at = match.end;
    }
    return MLA_OK;
}

typedef mla_status (*encode_rest)(encoder *e, const char *text, size_t bytes,
                                  mla_error *err);

static mla_status encode_plain(encoder *e, const char *text, size_t bytes, mla_error *err)
{
    return split(e, 0, text, bytes, err);
}

/* Finds the tokens of the set; what lies between them goes to `rest`. */
static mla_status find_added(encoder *e, const added_set *set, const char *text,
                             size_t bytes, encode_rest rest, mla_error *err)
{
    const added_text piece = {text, bytes, e->marks ? e->marks + (text - e->text) : NULL};
    for (size_t at = 0; at < bytes;) {
        added_match match;
        MLAI_TRY(added_find(set, &e->matcher, &piece, at, &match, err));
        MLAI_TRY(rest(e, text + at, match.begin - at, err));
        if (match.token) {
            MLAI_TRY(append(e->out, match.token->id, err));
        }
        at = match.end;
    }
    return MLA_OK;
}

static mla_status encode_normalized(encoder *e, const char *text, size_t bytes,
                                    mla_error *err)
{
    return find_added(e, &e->t->normalized, text, bytes, encode_plain, err);
}

static bool begins_with_bos(const tokenizer *t, const char *text, size_t bytes,
                            unsigned flags)
{
    size_t num = 0;
    const char *bos = tokenizer_bytes_of(t, t->bos, &num);
    return (flags & TOKENIZER_PARSE_SPECIAL) != 0 && bytes >= num &&
           memcmp(text, bos, num) == 0;
}

static mla_status encode(encoder *e, const char *text, size_t bytes, unsigned flags,
                         mla_error *err)
{
    if ((flags & TOKENIZER_ADD_BOS) != 0 && e->t->bos >= 0 &&
        !begins_with_bos(e->t, text, bytes, flags)) {
        MLAI_TRY(append(e->out, e->t->bos, err));
    }
    if ((flags & TOKENIZER_PARSE_SPECIAL) != 0) {
        return find_added(e, &e->t->raw, text, bytes, encode_normalized, err);
    }
    return encode_plain(e, text, bytes, err);
}

mla_status tokenizer_encode(const tokenizer *t, const char *text, size_t bytes,
                            unsigned flags, token_list *out, mla_error *err)
{
    return tokenizer_encode_marked(t, text, NULL, bytes, flags, out, err);
}

mla_status tokenizer_encode_marked(const tokenizer *t, const char *text,
                                   const unsigned char *marks, size_t bytes, unsigned flags,
                                   token_list *out, mla_error *err)
{
    token_list list = {.context = t->context};
    encoder e = {.t = t,
                 .out = &list,
                 .text = text,
                 .marks = marks,
                 .scratch = {.ledger = t->ledger}};
    MLAI_CHECK(bytes <= MAX_TEXT_BYTES, MLA_ERR_ARGUMENT,
               "the text has %zu bytes, and at most %d are read", bytes, MAX_TEXT_BYTES);
    size_t bad = utf8_first_bad(text, bytes);
    MLAI_CHECK(bad == bytes, MLA_ERR_ARGUMENT, "the text is not UTF-8 at byte %zu (0x%02x)",
               bad, (unsigned char)text[bad]);
    MLAI_TRY(regex_matcher_open(&e.matcher, t->ledger, err));
    mla_status status = encode(&e, text, bytes, flags, err);
    bpe_scratch_free(&e.scratch);
    regex_matcher_close(&e.matcher);
    if (status != MLA_OK) {
        token_list_free(&list);
        return status;
    }
    *out = list;
    return MLA_OK;
}

bool tokenizer_adds_bos(const tokenizer *t)
{
    return t->adds_bos;
}

int32_t tokenizer_vocab_size(const tokenizer *t)
{
    return t->vocabulary.num_tokens;
}

int32_t tokenizer_bos(const tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const tokenizer *t)
{
    return t->eos;
}

static const vocabulary_token *text_of(const tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocabulary.num_tokens ? &t->vocabulary.tokens[id] : NULL;
}

const char *tokenizer_bytes_of(const tokenizer *t, int32_t id, size_t *bytes)
{
    const vocabulary_token *token = text_of(t, id);
    bool is_there = token && token->bytes;
    *bytes = is_there ? token->num_bytes : 0;
    return is_there ? token->bytes : "";
}

bool tokenizer_is_special(const tokenizer *t, int32_t id)
{
    const vocabulary_token *token = text_of(t, id);
    return token && token->is_special;
}
