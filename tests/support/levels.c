/* levels.c - judges a suite by the levels it ran: see levels.h. */
#include "support/levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[] = {"c",    "avx2",  "avx512", "cpu",
                                          "sm80", "sm90a", "nvrtc",  "chromium"};

levels levels_start(const char *name)
{
    return (levels){.name = name};
}

static bool is_word(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

/* list: of words between commas; NULL or empty: all are in it. */
static bool is_listed(const char *name, const char *list)
{
    bool is_found = !list || !list[0];
    for (const char *word = list; !is_found && *word;) {
        size_t length = strcspn(word, ",");
        is_found = is_word(name, word, length);
        word += length + (word[length] == ',');
    }
    return is_found;
}

bool levels_run(levels *suite, const char *level, bool is_available)
{
    bool is_wanted = is_listed(level, getenv("MLA_TEST_LEVELS"));
    is_available = is_available && is_wanted;
    if (is_available) {
        suite->num_run++;
        printf("%s: level %s\n", suite->name, level);
    } else {
        printf("%s: level %s SKIPPED: %s\n", suite->name, level,
               is_wanted ? "this machine has not got it" : "MLA_TEST_LEVELS leaves it out");
        if (suite->num_skipped < LEVELS_MAX) {
            suite->skipped[suite->num_skipped] = level;
        }
        suite->num_skipped++;
    }
    (void)fflush(stdout);
    return is_available;
}

static bool is_level(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (is_word(level_names[i], word, length)) {
            return true;
        }
    }
    return false;
}

static bool is_skipped(const levels *suite, const char *word, size_t length)
{
    for (int i = 0; i < suite->num_skipped && i < LEVELS_MAX; i++) {
        if (is_word(suite->skipped[i], word, length)) {
            return true;
        }
    }
    return false;
}

/* Each word between commas: a level, and not one of those skipped. */
static int num_broken_promises(const levels *suite, const char *required)
{
    int num = 0;
    for (const char *word = required; *word;) {
        size_t length = strcspn(word, ",");
        if (length > 0 && !is_level(word, length)) {
            printf("%s: MLA_REQUIRE names '%.*s', which is no level\n", suite->name,
                   (int)length, word);
            num++;
        } else if (is_skipped(suite, word, length)) {
            printf("%s: level %.*s is required by MLA_REQUIRE and was skipped\n",
                   suite->name, (int)length, word);
            num++;
        }
        word += length + (word[length] == ',');
    }
    return num;
}

int levels_judge(const levels *suite, const char *required)
{
    int num_bad = suite->num_failed != 0;
    if (suite->num_run == 0) {
        printf("%s: no level was run, and nothing tested is not a pass\n", suite->name);
        num_bad++;
    }
    if (suite->num_skipped > LEVELS_MAX) {
        printf("%s: more than %d levels\n", suite->name, LEVELS_MAX);
        num_bad++;
    }
    num_bad += required ? num_broken_promises(suite, required) : 0;
    return num_bad > 0;
}

int levels_finish(const levels *suite)
{
    return levels_judge(suite, getenv("MLA_REQUIRE"));
}

bool levels_requires(const char *level)
{
    const char *required = getenv("MLA_REQUIRE");
    return required && required[0] && is_listed(level, required);
}

int test_cases(int all)
{
    const char *text = getenv("MLA_TEST_CASES");
    long most = text ? strtol(text, NULL, 10) : 0;
    return most > 0 && most < all ? (int)most : all;
}
