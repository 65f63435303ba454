/* The rewrites, as text and as what they split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/pattern.h"
#include "model/regex.h"
#include "support/books.h"

#define WS                                                                                 \
    "\\t-\\r\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"        \
    "\\x{205f}\\x{3000}"

static void check_rewrite(const char *from, const char *to)
{
    char out[1024];
    mla_error err = {0};
    if (pattern_rewrite(from, strlen(from), out, sizeof out, &err) != MLA_OK) {
        fail_msg("%s: %s", from, err.message);
    }
    assert_string_equal(out, to);
}

static void every_rewrite_is_as_documented(void **state)
{
    (void)state;
    check_rewrite("\\s+", "[" WS "]+");
    check_rewrite("\\s+(?!\\S)", "[" WS "]+(?![^" WS "])");
    check_rewrite("[^\\s\\p{L}]", "[^" WS "\\p{L}]");
    check_rewrite("[\\S]", "[\\P{White_Space}]");
    check_rewrite("\\\\s", "\\\\s"); /* a backslash and an s */
    check_rewrite("\\p{Han}+\\P{Han}", "\\p{sc:Han}+\\P{sc:Han}");
    check_rewrite("[\\p{Han}\\p{Lu}]", "[\\p{sc:Han}\\p{Lu}]");
    check_rewrite("\\p{N}{1,3}", "\\p{N}{1,3}");
    check_rewrite("\\pL", "\\pL");
    check_rewrite("[\\p{Ll}\\p{M}&&[^\\p{Han}]]+x",
                  "(?:(?![\\p{sc:Han}])[\\p{Ll}\\p{M}])+x");
    check_rewrite("[a&b]", "[a&b]");
    check_rewrite("a&&b", "a&&b");
    check_rewrite("[!\"#\\]^_]x]", "[!\"#\\]^_]x]");
    check_rewrite("[]a]", "[]a]"); /* a bracket that comes first is a member */
    check_rewrite("\\s+$", "[" WS "]+(?=\\n|\\z)");
    check_rewrite("^a[$^]", "(?m:^)a[$^]");
    check_rewrite("(?i:'s|'t)", "(?i:'s|'t)");
    check_rewrite("[^\r\n]?+", "[^\r\n]?+");
    check_rewrite("[\xe4\xb8\x80-\xe9\xbe\xa5]+", "[\xe4\xb8\x80-\xe9\xbe\xa5]+");
}

static void what_the_engines_read_differently_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           "\\w",      "\\b",        "\\h",        "\\R",         "\\1",
        "\\p{Foo}",   "\\p{^L}",  "\\p",        "\\p{L",      "\\p{}",       "\\",
        "[a",         "[",        "[]",         "[[a]b]",     "[[:alpha:]]", "[a&&b]",
        "[^a&&[^b]]", "[a&&[b]]", "[a&&[^b]c]", "[a&&[^b]",   "(?x)a",       "(?m:a)",
        "(*ACCEPT)",  "(?#c)",    "a{1,3}+",    "\\\xc3\xa9", "[&&[^a]]x[",  "\\u0041",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char out[1024];
        mla_error err = {0};
        if (pattern_rewrite(bad[i], strlen(bad[i]), out, sizeof out, &err) == MLA_OK) {
            fail_msg("%s became %s", bad[i], out);
        }
        assert_non_null(strstr(err.message, "pattern"));
    }
}

static void the_rewritten_pattern_fits_where_documented(void **state)
{
    (void)state;
    enum { NUM = 50 };
    char from[2 * NUM + 1] = {0};
    char out[1 + PATTERN_GROWTH * 2 * NUM];
    for (size_t i = 0; i < NUM; i++) {
        from[2 * i] = '\\';
        from[2 * i + 1] = 'S';
    }
    assert_int_equal(pattern_rewrite(from, strlen(from), out, sizeof out, NULL), MLA_OK);
    size_t used = strlen(out);
    assert_int_equal(pattern_rewrite(from, strlen(from), out, used + 2, NULL), MLA_OK);
    assert_int_equal(pattern_rewrite(from, strlen(from), out, used, NULL),
                     MLA_ERR_UNSUPPORTED);
}

/* Appends a piece and a '|'. */
static size_t note(char *out, size_t used, size_t capacity, const char *text, size_t bytes)
{
    int more = snprintf(out + used, capacity - used, "%.*s%s", (int)bytes, text,
                        bytes > 0 ? "|" : "");
    return used + (size_t)more;
}

/* Matches and what lies between them, joined by '|'. */
static void check_split(const char *pattern, const char *text, const char *wanted)
{
    char got[512] = {0};
    mla_context books = books_open(NULL);
    mla_error err = {0};
    regex_memory memory;
    regex_matcher matcher;
    regex *made = NULL;
    assert_int_equal(regex_memory_open(&books.ledger, MLA_FOR_CONTEXT, &memory, &err), 0);
    if (regex_compile(&memory, pattern, strlen(pattern), &made, &err) != MLA_OK) {
        fail_msg("%s: %s", pattern, err.message);
    }
    assert_int_equal(regex_matcher_open(&matcher, &books.ledger, &err), MLA_OK);
    size_t bytes = strlen(text);
    size_t used = 0;
    for (size_t at = 0; at < bytes;) {
        regex_match match;
        assert_int_equal(regex_find(&matcher, made, text, bytes, at, &match, &err), MLA_OK);
        used = note(got, used, sizeof got, text + at, match.begin - at);
        used = note(got, used, sizeof got, text + match.begin, match.end - match.begin);
        at = match.end;
    }
    regex_matcher_close(&matcher);
    regex_free(made);
    regex_memory_close(&memory);
    assert_int_equal(books_now(&books), 0);
    if (strcmp(got, wanted) != 0) {
        fail_msg("%s on %s: %s, wanted %s", pattern, text, got, wanted);
    }
}

#define DEEPSEEK                                                                           \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"     \
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"              \
    " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define KIMI                                                                               \
    "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*" \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+|\\s+(?!\\S)|\\s+"

static void the_patterns_of_real_models_split_as_their_engine_does(void **state)
{
    (void)state;
    /* U+180E is no white space, so it is not taken with the line's end. */
    check_split(DEEPSEEK, "a\xe1\xa0\x8e\nb", "a|\xe1\xa0\x8e|\n|b|");
    check_split("\\s+", "a \xe1\xa0\x8e b", "a| |\xe1\xa0\x8e| |b|");
    check_split(DEEPSEEK, "int main(void)\n  {x}", "int| main|(void|)\n| | {|x|}|");
    check_split(DEEPSEEK, "a   b\t\n", "a|  | b|\t\n|");
    check_split(LLAMA, "He'S 12345 ok", "He|'S| |123|45| ok|");
    check_split(LLAMA, "a  \n  b", "a|  \n| | b|");
    /* An ideographic comma has Han among its script extensions, but is not Han itself. */
    check_split("[\\p{Han}]+", "\xe4\xb8\xad\xe3\x80\x81\xe4\xb8\xad",
                "\xe4\xb8\xad|\xe3\x80\x81|\xe4\xb8\xad|");
    check_split(KIMI,
                "ab\xe4\xb8\xad"
                "cd",
                "ab|\xe4\xb8\xad|cd|");
    /* The end of a line is an end for $, too. */
    check_split("\\s+$", "a  \nb ", "a|  |\nb| |");
    check_split("^b", "b\nbb", "b|\n|b|b|");
}

static void a_pattern_that_cannot_be_compiled_is_refused(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    regex_memory memory;
    regex *made = NULL;
    mla_error err = {0};
    assert_int_equal(regex_memory_open(&books.ledger, MLA_FOR_CONTEXT, &memory, &err), 0);
    assert_int_equal(regex_compile(&memory, "a)", 2, &made, &err), MLA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "byte"));
    assert_null(made);
    regex_memory_close(&memory);
    assert_int_equal(books_now(&books), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rewrite_is_as_documented),
        cmocka_unit_test(what_the_engines_read_differently_is_refused),
        cmocka_unit_test(the_rewritten_pattern_fits_where_documented),
        cmocka_unit_test(the_patterns_of_real_models_split_as_their_engine_does),
        cmocka_unit_test(a_pattern_that_cannot_be_compiled_is_refused),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
