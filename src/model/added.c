/* added.c - leftmost-longest search over a sorted list. */
#include "model/added.h"

#include <string.h>

#include "model/sort.h"
#include "model/utf8.h"

static int by_bytes(const void *a, const void *b)
{
    const added_token *x = a;
    const added_token *y = b;
    size_t common = x->num_bytes < y->num_bytes ? x->num_bytes : y->num_bytes;
    int order = memcmp(x->bytes, y->bytes, common);
    return order != 0 ? order
                      : (x->num_bytes > y->num_bytes) - (x->num_bytes < y->num_bytes);
}

mla_status added_set_build(arena *from, const added_token *list, size_t num, added_set *out,
                           mla_error *err)
{
    void *memory = NULL;
    MLAI_TRY(
        arena_take(from, num, sizeof(added_token *), "the added tokens", &memory, err));
    const added_token **sorted = memory;
    added_set set = {
        .is_normalized = out->is_normalized, .word = out->word, .sorted = sorted};
    for (size_t i = 0; i < num; i++) {
        if (list[i].is_normalized == set.is_normalized) {
            sorted[set.num++] = &list[i];
            set.is_start[(unsigned char)list[i].bytes[0]] = true;
        }
    }
    sort_pointers((const void **)sorted, set.num, by_bytes);
    for (size_t i = 1; i < set.num; i++) {
        MLAI_CHECK(by_bytes(sorted[i - 1], sorted[i]) != 0, MLA_ERR_CORRUPT,
                   "added tokens %d and %d are both \"%.60s\"", sorted[i - 1]->id,
                   sorted[i]->id, sorted[i]->bytes);
    }
    *out = set;
    return MLA_OK;
}

/* Among sorted[low, high), which agree on their first `depth` bytes and are longer, the
 * first whose next byte is at least `byte`. */
static size_t lower_bound(const added_set *set, size_t low, size_t high, size_t depth,
                          int byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((unsigned char)set->sorted[middle]->bytes[depth] < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

typedef struct search {
    const char *text;
    size_t bytes, start;
    const unsigned char *marks;
    const regex *word;
    regex_matcher *matcher;
} search;

/* The longest token at `at`, or NULL. */
static const added_token *longest_at(const added_set *set, const search *in, size_t at)
{
    const added_token *longest = NULL;
    bool is_marked = false;
    size_t low = 0;
    size_t high = set->num;
    for (size_t depth = 0; depth < in->bytes - at && low < high; depth++) {
        int byte = (unsigned char)in->text[at + depth];
        is_marked = is_marked || (in->marks && in->marks[at + depth]);
        low = lower_bound(set, low, high, depth, byte);
        high = lower_bound(set, low, high, depth, byte + 1);
        if (low < high && set->sorted[low]->num_bytes == depth + 1) {
            const added_token *token = set->sorted[low++]; /* the shortest sorts first */
            longest = is_marked && token->is_control ? longest : token;
        }
    }
    return longest;
}

/* Whether text[at, at + length) is one character of a word. */
static mla_status is_word(const search *in, size_t at, size_t length, bool *out,
                          mla_error *err)
{
    regex_match found;
    MLAI_TRY(regex_find(in->matcher, in->word, in->text + at, length, 0, &found, err));
    *out = found.begin < length;
    return MLA_OK;
}

static mla_status stands_alone(const search *in, const added_match *match, bool *out,
                               mla_error *err)
{
    bool is_left = false;
    bool is_right = false;
    if (match->begin > 0) {
        size_t at = utf8_before(in->text, match->begin);
        MLAI_TRY(is_word(in, at, match->begin - at, &is_left, err));
    }
    if (match->end < in->bytes) {
        size_t length;
        (void)utf8_read(in->text + match->end, &length);
        MLAI_TRY(is_word(in, match->end, length, &is_right, err));
    }
    *out = !is_left && !is_right;
    return MLA_OK;
}

static void take_spaces(const search *in, added_match *match)
{
    size_t length;
    while (match->token->takes_left_space && match->begin > in->start) {
        size_t at = utf8_before(in->text, match->begin);
        if (!utf8_is_white_space(utf8_read(in->text + at, &length))) {
            break;
        }
        match->begin = at;
    }
    while (match->token->takes_right_space && match->end < in->bytes &&
           utf8_is_white_space(utf8_read(in->text + match->end, &length))) {
        match->end += length;
    }
}

/* The longest token at `at`, or NULL. */
static const added_token *token_at(const added_set *set, const search *in, size_t at)
{
    if (!set->is_start[(unsigned char)in->text[at]]) {
        return NULL;
    }
    return longest_at(set, in, at);
}

mla_status added_find(const added_set *set, regex_matcher *matcher, const added_text *text,
                      size_t start, added_match *out, mla_error *err)
{
    const search in = {text->text, text->bytes, start, text->marks, set->word, matcher};
    size_t bytes = text->bytes;
    added_match match = {bytes, bytes, NULL};
    for (size_t at = start; at < bytes; at++) {
        const added_token *token = token_at(set, &in, at);
        if (!token) {
            continue;
        }
        bool is_match = true;
        match = (added_match){at, at + token->num_bytes, token};
        if (token->is_single_word) {
            MLAI_TRY(stands_alone(&in, &match, &is_match, err));
        }
        if (is_match) {
            take_spaces(&in, &match);
            *out = match;
            return MLA_OK;
        }
        at = match.end - 1; /* a match that is refused is passed over whole */
    }
    *out = (added_match){bytes, bytes, NULL};
    return MLA_OK;
}
