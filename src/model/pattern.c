/* pattern.c - the rewriter: one pass, class by class and escape by escape. */
#include "model/pattern.h"

#include <stdbool.h>
#include <string.h>

#define WHITE_SPACE                                                                        \
    "\\t-\\r\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"        \
    "\\x{205f}\\x{3000}"

typedef struct rewriter {
    const char *in;
    size_t at, bytes;
    char *out;
    size_t used, capacity;
} rewriter;

static void emit(rewriter *r, const char *text, size_t bytes)
{
    if (bytes < r->capacity - r->used) {
        memcpy(r->out + r->used, text, bytes);
        r->used += bytes;
    } else {
        r->used = r->capacity - 1; /* full: pattern_rewrite notices */
    }
    r->out[r->used] = '\0';
}

static void emit_text(rewriter *r, const char *text)
{
    emit(r, text, strlen(text));
}

/* The character at an offset from here, 0 past the end. */
static char peek(const rewriter *r, size_t ahead)
{
    if (r->at + ahead >= r->bytes) {
        return '\0';
    }
    return r->in[r->at + ahead];
}

static bool starts_with(const rewriter *r, const char *text)
{
    size_t bytes = strlen(text);
    return r->bytes - r->at >= bytes && memcmp(r->in + r->at, text, bytes) == 0;
}

/* Copies what both engines read alike. */
static void copy(rewriter *r, size_t bytes)
{
    size_t left = r->bytes - r->at;
    bytes = bytes < left ? bytes : left;
    emit(r, r->in + r->at, bytes);
    r->at += bytes;
}

static bool is_script(const char *name, size_t bytes)
{
    static const char *const scripts[] = {
        "Han",    "Hiragana", "Katakana", "Hangul", "Bopomofo", "Latin",   "Greek",
        "Arabic", "Cyrillic", "Hebrew",   "Thai",   "Lao",      "Tibetan", "Devanagari",
        "Tamil",  "Bengali",  "Telugu",   "Khmer",  "Myanmar",  "Armenian"};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        if (strlen(scripts[i]) == bytes && memcmp(scripts[i], name, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* A general category: \p{L}, \p{Lu}. */
static bool is_category(const char *name, size_t bytes)
{
    return (bytes == 1 || bytes == 2) && is_letter(name[0]) && is_letter(name[bytes - 1]);
}

/* At \p or \P. */
static mla_status rewrite_property(rewriter *r, mla_error *err)
{
    if (peek(r, 2) != '{') {
        MLAI_CHECK(is_letter(peek(r, 2)), MLA_ERR_UNSUPPORTED,
                   "pattern: \\%c at byte %zu names no property", peek(r, 1), r->at);
        copy(r, 3);
        return MLA_OK;
    }
    const char *name = r->in + r->at + 3;
    const char *end = memchr(name, '}', r->bytes - r->at - 3);
    size_t bytes = end ? (size_t)(end - name) : 0;
    bool is_known = is_category(name, bytes) || is_script(name, bytes);
    MLAI_CHECK(end && is_known, MLA_ERR_UNSUPPORTED,
               "pattern: property %.*s at byte %zu is not supported",
               (int)(bytes < 40 ? bytes : 40), name, r->at);
    emit(r, r->in + r->at, 3);
    emit_text(r, is_script(name, bytes) ? "sc:" : "");
    emit(r, name, bytes + 1);
    r->at += bytes + 4;
    return MLA_OK;
}

/* At a backslash. */
static mla_status rewrite_escape(rewriter *r, bool is_in_class, mla_error *err)
{
    char next = peek(r, 1);
    switch (next) {
    case 's':
        emit_text(r, is_in_class ? WHITE_SPACE : "[" WHITE_SPACE "]");
        r->at += 2;
        return MLA_OK;
    case 'S': /* a class cannot hold the complement of a list, so here it is a property */
        emit_text(r, is_in_class ? "\\P{White_Space}" : "[^" WHITE_SPACE "]");
        r->at += 2;
        return MLA_OK;
    case 'p':
    case 'P':
        return rewrite_property(r, err);
    case 'r':
    case 'n':
    case 't':
    case 'd':
    case 'D':
    case 'x':
        copy(r, 2);
        return MLA_OK;
    default:
        break;
    }
    MLAI_CHECK(next != '\0' && !is_letter(next) && !(next >= '0' && next <= '9') &&
                   (unsigned char)next < 0x80,
               MLA_ERR_UNSUPPORTED, "pattern: escape \\%c at byte %zu is not supported",
               next, r->at);
    copy(r, 2);
    return MLA_OK;
}

/* Items of a class from here to the byte `end`. */
static mla_status rewrite_items(rewriter *r, size_t end, mla_error *err)
{
    while (r->at < end) {
        if (peek(r, 0) == '\\') {
            MLAI_TRY(rewrite_escape(r, true, err));
            continue;
        }
        MLAI_CHECK(peek(r, 0) != '[', MLA_ERR_UNSUPPORTED,
                   "pattern: a class within a class at byte %zu is not supported", r->at);
        copy(r, 1);
    }
    return MLA_OK;
}

/* The offset of the ']' that closes the class whose first item is at `at`, or of the "&&"
 * in it; r->bytes where there is neither. */
static size_t end_of_items(const rewriter *r, size_t at)
{
    size_t first = at;
    for (; at < r->bytes; at++) {
        if (r->in[at] == '\\') {
            at++;
        } else if ((r->in[at] == ']' && at > first) ||
                   (r->in[at] == '&' && at + 1 < r->bytes && r->in[at + 1] == '&')) {
            return at;
        }
    }
    return r->bytes;
}

/* At the '[' of [A&&[^B]]; `middle` is the offset of its "&&". */
static mla_status rewrite_intersection(rewriter *r, size_t middle, mla_error *err)
{
    size_t start = r->at;
    size_t first = middle + 4; /* after &&[^ */
    size_t end = first < r->bytes ? end_of_items(r, first) : r->bytes;
    MLAI_CHECK(r->in[start + 1] != '^' && end + 1 < r->bytes && r->in[end] == ']' &&
                   r->in[end + 1] == ']' && memcmp(r->in + middle, "&&[^", 4) == 0,
               MLA_ERR_UNSUPPORTED,
               "pattern: the intersection at byte %zu is not of the form [A&&[^B]]", r->at);
    emit_text(r, "(?:(?![");
    r->at = first;
    MLAI_TRY(rewrite_items(r, end, err));
    emit_text(r, "])[");
    r->at = start + 1;
    MLAI_TRY(rewrite_items(r, middle, err));
    emit_text(r, "])");
    r->at = end + 2;
    return MLA_OK;
}

/* At a '['. */
static mla_status rewrite_class(rewriter *r, mla_error *err)
{
    size_t first = r->at + 1 + (peek(r, 1) == '^');
    size_t end = end_of_items(r, first);
    MLAI_CHECK(end < r->bytes && end > first, MLA_ERR_CORRUPT,
               "pattern: the class at byte %zu has no end", r->at);
    if (r->in[end] == '&') {
        return rewrite_intersection(r, end, err);
    }
    copy(r, first - r->at);
    MLAI_TRY(rewrite_items(r, end, err));
    copy(r, 1);
    return MLA_OK;
}

/* At a '('. */
static mla_status rewrite_group(rewriter *r, mla_error *err)
{
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (starts_with(r, known[i])) {
            copy(r, strlen(known[i]));
            return MLA_OK;
        }
    }
    MLAI_CHECK(peek(r, 1) != '?' && peek(r, 1) != '*', MLA_ERR_UNSUPPORTED,
               "pattern: the group (%c%c at byte %zu is not supported", peek(r, 1),
               peek(r, 2) ? peek(r, 2) : ' ', r->at);
    copy(r, 1);
    return MLA_OK;
}

static mla_status rewrite_one(rewriter *r, mla_error *err)
{
    switch (peek(r, 0)) {
    case '\\':
        return rewrite_escape(r, false, err);
    case '[':
        return rewrite_class(r, err);
    case '(':
        return rewrite_group(r, err);
    case '$':
        emit_text(r, "(?=\\n|\\z)");
        r->at++;
        return MLA_OK;
    case '^':
        emit_text(r, "(?m:^)");
        r->at++;
        return MLA_OK;
    case '}': /* {1,3}+ is possessive to PCRE2 and repeated to the other */
        MLAI_CHECK(peek(r, 1) != '+', MLA_ERR_UNSUPPORTED,
                   "pattern: the quantifier }+ at byte %zu is not supported", r->at);
        break;
    default:
        break;
    }
    copy(r, 1);
    return MLA_OK;
}

mla_status pattern_rewrite(const char *pattern, size_t bytes, char *out, size_t capacity,
                           mla_error *err)
{
    MLAI_CHECK(bytes > 0 && bytes <= PATTERN_MAX_BYTES, MLA_ERR_UNSUPPORTED,
               "pattern: it has %zu bytes, outside 1 to %d", bytes, PATTERN_MAX_BYTES);
    rewriter r = {.in = pattern, .bytes = bytes, .capacity = capacity};
    r.out = out;
    while (r.at < bytes) {
        MLAI_TRY(rewrite_one(&r, err));
        MLAI_CHECK(r.used + 1 < capacity, MLA_ERR_UNSUPPORTED,
                   "pattern: rewritten it is longer than %zu bytes", capacity);
    }
    return MLA_OK;
}
