/* lexer_data.c - text between tags. A tag that begins with - strips the text before it; a
 * block or comment strips the blanks that it stands behind on its line; one that ends with -
 * strips what follows, and without it a newline right after a block or comment goes. */
#include "model/jinja/lexer_data.h"

#include <string.h>

void jinja_lexer_move(jinja_lexer *lexer, size_t end)
{
    for (size_t i = lexer->at; i < end; i++) {
        lexer->line += lexer->source.data[i] == '\n';
    }
    lexer->begins_line = end > lexer->at && lexer->source.data[end - 1] == '\n';
    lexer->at = end;
}

static char char_at(const jinja_lexer *lexer, size_t at)
{
    return (char)(at < lexer->source.bytes ? lexer->source.data[at] : '\0');
}

static size_t spaces_end(const jinja_lexer *lexer, size_t at)
{
    for (size_t n = 1; n > 0; at += n) {
        n = jinja_text_space_at(lexer->source, at);
    }
    return at;
}

/* Where a tag that may end at `at` with closer (%}, }} or #}) ends, with the white space
 * that it takes; 0: it does not end here. */
static size_t tag_end(const jinja_lexer *lexer, size_t at, const char *closer)
{
    bool is_print = closer[0] == '}';
    char sign = char_at(lexer, at);
    bool has_sign = sign == '-' || (sign == '+' && !is_print);
    at += has_sign;
    if (char_at(lexer, at) != closer[0] || char_at(lexer, at + 1) != closer[1]) {
        return 0;
    }
    at += 2;
    if (has_sign && sign == '-') {
        return spaces_end(lexer, at);
    }
    return at + (!has_sign && !is_print && char_at(lexer, at) == '\n');
}

bool jinja_lexer_ends(jinja_lexer *lexer, jinja_token *out)
{
    bool is_print = lexer->inside == JINJA_PRINT_BEGIN;
    size_t end =
        lexer->num_open > 0 ? 0 : tag_end(lexer, lexer->at, is_print ? "}}" : "%}");
    if (end == 0) {
        return false;
    }
    out->kind = is_print ? JINJA_PRINT_END : JINJA_BLOCK_END;
    out->text = is_print ? JINJA_TEXT("}}") : JINJA_TEXT("%}");
    jinja_lexer_move(lexer, end);
    lexer->inside = JINJA_DATA;
    return true;
}

/* The text before a tag that begins at `end` with this sign. */
static jinja_text before_tag(const jinja_lexer *lexer, size_t end, bool is_print)
{
    char sign = char_at(lexer, end + 2);
    jinja_text text = jinja_text_part(lexer->source, lexer->at, end);
    if (sign == '-') {
        return jinja_text_strip(text, false, true);
    }
    if (sign == '+' || is_print) {
        return text;
    }
    const char *newline = text.bytes > 0 ? memrchr(text.data, '\n', text.bytes) : NULL;
    size_t line = newline ? (size_t)(newline - text.data) + 1 : 0;
    jinja_text blanks = jinja_text_part(text, line, text.bytes);
    if ((line > 0 || lexer->begins_line) &&
        jinja_text_strip(blanks, true, false).bytes == 0) {
        return jinja_text_part(text, 0, line);
    }
    return text;
}

/* The first {{, {% or {# from `at` on; the source's end where there is none. */
static size_t find_tag(const jinja_lexer *lexer, size_t at)
{
    for (; at + 1 < lexer->source.bytes; at++) {
        if (lexer->source.data[at] == '{' && strchr("{%#", lexer->source.data[at + 1]) &&
            lexer->source.data[at + 1] != '\0') {
            return at;
        }
    }
    return lexer->source.bytes;
}

/* After {% and its sign: {% word %}? The end of the tag, or 0. */
static size_t word_tag_end(const jinja_lexer *lexer, size_t at, const char *word)
{
    size_t num = strlen(word);
    char sign = char_at(lexer, at + 2);
    at = spaces_end(lexer, at + 2 + (sign == '-' || sign == '+'));
    if (lexer->source.bytes - at < num || memcmp(lexer->source.data + at, word, num) != 0) {
        return 0;
    }
    return tag_end(lexer, spaces_end(lexer, at + num), "%}");
}

static mla_status skip_comment(jinja_lexer *lexer, size_t tag, mla_error *err)
{
    size_t sign = char_at(lexer, tag + 2) == '-' || char_at(lexer, tag + 2) == '+';
    for (size_t at = tag + 2 + sign; at + 1 < lexer->source.bytes; at++) {
        size_t end = tag_end(lexer, at, "#}");
        if (end > 0) {
            jinja_lexer_move(lexer, end);
            return MLA_OK;
        }
    }
    return MLAI_FAIL(MLA_ERR_CORRUPT, "line %d: a comment has no closing #}", lexer->line);
}

/* {% raw %} is behind us: the text up to {% endraw %}. A newline right after the tag stays. */
static mla_status lex_raw(jinja_lexer *lexer, jinja_token *out, mla_error *err)
{
    for (size_t at = lexer->at; at + 1 < lexer->source.bytes; at++) {
        bool is_tag = lexer->source.data[at] == '{' && lexer->source.data[at + 1] == '%';
        size_t end = is_tag ? word_tag_end(lexer, at, "endraw") : 0;
        if (end > 0) {
            *out = (jinja_token){JINJA_DATA, lexer->line, before_tag(lexer, at, false)};
            jinja_lexer_move(lexer, end);
            return MLA_OK;
        }
    }
    return MLAI_FAIL(MLA_ERR_CORRUPT, "line %d: raw has no endraw", lexer->line);
}

static void begin_tag(jinja_lexer *lexer, size_t tag, jinja_token *out)
{
    bool is_print = char_at(lexer, tag + 1) == '{';
    char sign = char_at(lexer, tag + 2);
    jinja_lexer_move(lexer, tag + 2 + (sign == '-' || sign == '+'));
    lexer->inside = is_print ? JINJA_PRINT_BEGIN : JINJA_BLOCK_BEGIN;
    *out = (jinja_token){lexer->inside, lexer->line,
                         is_print ? JINJA_TEXT("{{") : JINJA_TEXT("{%")};
}

/* {% raw %} takes no + at its end, and keeps the newline behind it. */
static size_t raw_begins(const jinja_lexer *lexer, size_t tag)
{
    size_t end = char_at(lexer, tag + 1) == '%' ? word_tag_end(lexer, tag, "raw") : 0;
    if (end == 0) {
        return 0;
    }
    size_t closer = end - 1;
    while (char_at(lexer, closer) != '}') {
        closer--;
    }
    char sign = char_at(lexer, closer - 2);
    if (sign == '+') {
        return 0;
    }
    return sign == '-' ? end : closer + 1;
}

mla_status jinja_lexer_data(jinja_lexer *lexer, jinja_token *out, mla_error *err)
{
    *out = (jinja_token){.kind = JINJA_DATA, .line = lexer->line};
    size_t tag = find_tag(lexer, lexer->at);
    if (tag == lexer->source.bytes) {
        out->kind = tag > lexer->at ? JINJA_DATA : JINJA_END;
        out->text = jinja_text_part(lexer->source, lexer->at, tag);
        jinja_lexer_move(lexer, tag);
        return MLA_OK;
    }
    if (!lexer->begins_tag) { /* the text first, the tag with the next call */
        out->text = before_tag(lexer, tag, char_at(lexer, tag + 1) == '{');
        lexer->begins_tag = true;
        jinja_lexer_move(lexer, tag);
        return MLA_OK;
    }
    lexer->begins_tag = false;
    size_t raw = raw_begins(lexer, tag);
    if (raw > 0) {
        jinja_lexer_move(lexer, raw);
        return lex_raw(lexer, out, err);
    }
    if (char_at(lexer, tag + 1) == '#') {
        return skip_comment(lexer, tag, err); /* as a DATA token of no text */
    }
    begin_tag(lexer, tag, out);
    return MLA_OK;
}
