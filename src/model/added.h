/* added.h - tokens that are found in the text as they stand, before it is split: markers of
 * a conversation, mostly. */
#ifndef MLA_MODEL_ADDED_H
#define MLA_MODEL_ADDED_H

#include "model/arena.h"
#include "model/regex.h"

typedef struct added_token {
    const char *bytes;
    size_t num_bytes; /* > 0 */
    int32_t id;
    bool takes_left_space, takes_right_space; /* lstrip, rstrip */
    bool is_single_word; /* not beside a letter, digit, mark or underscore */
    bool is_special;
    bool is_normalized; /* found in what the others leave, see added_find */
    bool is_control;    /* not found in text that may not forge one */
} added_token;

/* Sorted by bytes, so that the tokens with a common start lie together. */
typedef struct added_set {
    bool is_normalized;
    const added_token *const *sorted; /* [num] */
    size_t num;
    bool is_start[256]; /* some token starts with the byte */
    const regex *word;  /* one character of a word, borrowed */
} added_set;

/* list: [num], borrowed; those with is_normalized as out->is_normalized has it, which the
 * caller sets, as it does the word. No text twice: MLA_ERR_CORRUPT. The set is in the arena. */
mla_status added_set_build(arena *from, const added_token *list, size_t num, added_set *out,
                           mla_error *err);

typedef struct added_match {
    size_t begin, end; /* with the space that it takes */
    const added_token *token;
} added_match;

/* What to search: text: [bytes], valid UTF-8. marks: [bytes], 1 where no byte of a control
 * token may be; NULL: nowhere. */
typedef struct added_text {
    const char *text;
    size_t bytes;
    const unsigned char *marks;
} added_text;

/* The first match that starts at `start` or later; the longest of those that start there. It
 * takes no space before `start`. out->token NULL: there is none. */
mla_status added_find(const added_set *set, regex_matcher *matcher, const added_text *text,
                      size_t start, added_match *out, mla_error *err);

#endif
