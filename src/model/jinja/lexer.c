/* lexer.c - the tokens of a tag. What lies outside of tags is lexer_data.c's. */
#include "model/jinja/lexer.h"

#include <string.h>

#include "model/jinja/lexer_data.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static char char_at(const jinja_lexer *lexer, size_t at)
{
    return (char)(at < lexer->source.bytes ? lexer->source.data[at] : '\0');
}

mla_status jinja_lexer_begin(jinja_memory *memory, jinja_text source, jinja_lexer *out,
                             mla_error *err)
{
    void *copied = NULL;
    size_t num = 0;
    MLAI_TRY(jinja_take(memory, source.bytes + 1, 1, &copied, err));
    char *to = copied;
    for (size_t i = 0; i < source.bytes; i++) {
        bool is_return = source.data[i] == '\r';
        to[num++] = (char)(is_return ? '\n' : source.data[i]);
        i += is_return && i + 1 < source.bytes && source.data[i + 1] == '\n';
    }
    num -= num > 0 && to[num - 1] == '\n';
    *out = (jinja_lexer){.source = {.data = to, .bytes = num},
                         .line = 1,
                         .inside = JINJA_DATA,
                         .begins_line = true};
    return MLA_OK;
}

/* Digits with single underscores between them. */
static size_t digits_end(const jinja_lexer *lexer, size_t at)
{
    while (is_digit(char_at(lexer, at)) ||
           (char_at(lexer, at) == '_' && is_digit(char_at(lexer, at + 1)))) {
        at++;
    }
    return at;
}

static jinja_token_kind lex_number(const jinja_lexer *lexer, size_t *end)
{
    size_t whole = digits_end(lexer, lexer->at);
    size_t at = whole;
    if (char_at(lexer, at) == '.' && is_digit(char_at(lexer, at + 1))) {
        at = digits_end(lexer, at + 1);
    }
    if (char_at(lexer, at) == 'e' || char_at(lexer, at) == 'E') {
        size_t sign = at + 1;
        sign += char_at(lexer, sign) == '-' || char_at(lexer, sign) == '+';
        at = is_digit(char_at(lexer, sign)) ? digits_end(lexer, sign) : at;
    }
    *end = at;
    return at > whole ? JINJA_REAL : JINJA_INTEGER;
}

static mla_status lex_string(const jinja_lexer *lexer, size_t *end, mla_error *err)
{
    char quote = char_at(lexer, lexer->at);
    size_t at = lexer->at + 1;
    while (at < lexer->source.bytes && char_at(lexer, at) != quote) {
        at += char_at(lexer, at) == '\\' ? 2 : 1;
    }
    MLAI_CHECK(at < lexer->source.bytes, MLA_ERR_CORRUPT,
               "line %d: a string has no closing %c", lexer->line, quote);
    *end = at + 1;
    return MLA_OK;
}

static size_t operator_bytes(const jinja_lexer *lexer)
{
    static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};
    char first = char_at(lexer, lexer->at);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (first == pairs[i][0] && char_at(lexer, lexer->at + 1) == pairs[i][1]) {
            return 2;
        }
    }
    return first != '\0' && strchr("+-/*%~[](){}><=.:|,;", first) ? 1 : 0;
}

/* The brackets of one tag: what closes must be what was opened last. */
static mla_status balance(jinja_lexer *lexer, char c, mla_error *err)
{
    if (c == '(' || c == '[' || c == '{') {
        MLAI_CHECK(lexer->num_open < (int32_t)sizeof lexer->open, MLA_ERR_UNSUPPORTED,
                   "line %d: '%c' is open more than %zu deep", lexer->line, c,
                   sizeof lexer->open);
        lexer->open[lexer->num_open++] = (char)(c == '(' ? ')' : c + 2);
    } else if (c == ')' || c == ']' || c == '}') {
        MLAI_CHECK(lexer->num_open > 0 && lexer->open[lexer->num_open - 1] == c,
                   MLA_ERR_CORRUPT, "line %d: unexpected '%c'", lexer->line, c);
        lexer->num_open--;
    }
    return MLA_OK;
}

static mla_status lex_inside(jinja_lexer *lexer, jinja_token *out, mla_error *err)
{
    size_t end = lexer->at;
    char first = char_at(lexer, lexer->at);
    if (is_digit(first)) {
        out->kind = lex_number(lexer, &end);
        MLAI_CHECK(!is_name(char_at(lexer, end)), MLA_ERR_UNSUPPORTED,
                   "line %d: '%.*s...' is no decimal number", lexer->line,
                   (int)(end - lexer->at + 1), lexer->source.data + lexer->at);
    } else if (is_name(first)) {
        out->kind = JINJA_NAME;
        for (; is_name(char_at(lexer, end)); end++) {
        }
    } else if (first == '\'' || first == '"') {
        out->kind = JINJA_STRING;
        MLAI_TRY(lex_string(lexer, &end, err));
    } else {
        out->kind = JINJA_OPERATOR;
        end += operator_bytes(lexer);
        MLAI_CHECK(end > lexer->at, MLA_ERR_CORRUPT, "line %d: unexpected character '%.*s'",
                   lexer->line,
                   (int)(jinja_text_offset(lexer->source, lexer->at, 1) - lexer->at),
                   lexer->source.data + lexer->at);
        MLAI_TRY(balance(lexer, first, err));
    }
    out->text = jinja_text_part(lexer->source, lexer->at, end);
    jinja_lexer_move(lexer, end);
    return MLA_OK;
}

static void skip_space(jinja_lexer *lexer)
{
    size_t end = lexer->at;
    for (size_t n = 1; n > 0; end += n) {
        n = jinja_text_space_at(lexer->source, end);
    }
    if (end > lexer->at) {
        jinja_lexer_move(lexer, end);
    }
}

mla_status jinja_lexer_next(jinja_lexer *lexer, jinja_token *out, mla_error *err)
{
    if (lexer->inside == JINJA_DATA) {
        return jinja_lexer_data(lexer, out, err);
    }
    skip_space(lexer);
    *out = (jinja_token){.line = lexer->line};
    MLAI_CHECK(lexer->at < lexer->source.bytes, MLA_ERR_CORRUPT,
               "line %d: the template ends inside of a tag", lexer->line);
    return jinja_lexer_ends(lexer, out) ? MLA_OK : lex_inside(lexer, out, err);
}
