/* Any bytes as a pre-tokenizer's pattern: refused, or rewritten within the documented length
 * and compiled or refused by PCRE2; nothing stays in the books. */
#include <string.h>

#include "check.h"
#include "model/pattern.h"
#include "model/regex.h"
#include "support/books.h"

static void match_some(regex_memory *memory, const regex *made)
{
    static const char text[] = "a1 \n\t\xe4\xb8\xad]&&[^$b  ";
    regex_matcher matcher;
    regex_match match;
    if (regex_matcher_open(&matcher, memory->ledger, NULL) != MLA_OK) {
        return;
    }
    if (regex_find(&matcher, made, text, sizeof text - 1, 0, &match, NULL) == MLA_OK) {
        FUZZ_CHECK(match.begin <= match.end && match.end <= sizeof text - 1);
    }
    regex_matcher_close(&matcher);
}

static void compile(mla_context *books, const char *pattern, size_t num_bytes)
{
    regex_memory memory;
    regex *made = NULL;
    mla_error err = {0};
    FUZZ_CHECK(regex_memory_open(&books->ledger, MLA_FOR_CONTEXT, &memory, &err) == MLA_OK);
    if (regex_compile(&memory, pattern, num_bytes, &made, &err) == MLA_OK) {
        match_some(&memory, made);
        regex_free(made);
    } else {
        FUZZ_CHECK(strncmp(err.message, "pattern: ", 9) == 0);
    }
    regex_memory_close(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    mla_context books = books_open(NULL);
    compile(&books, (const char *)data, num_bytes);
    FUZZ_CHECK(books_now(&books) == 0);
    return 0;
}
