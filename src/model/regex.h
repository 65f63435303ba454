/* regex.h - PCRE2 with its memory in the ledger's books: a pattern compiled once (with JIT
 * where the machine allows it) and matched by any number of threads, each with a matcher of
 * its own. */
#ifndef MLA_MODEL_REGEX_H
#define MLA_MODEL_REGEX_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/ledger.h"

/* Where PCRE2's allocations go; stays in place while anything made with it lives. */
typedef struct regex_memory {
    mlai_ledger *ledger;
    mla_purpose purpose;
    bool has_failed; /* an allocation was refused */
    pcre2_general_context *context;
} regex_memory;
mla_status regex_memory_open(mlai_ledger *ledger, mla_purpose purpose, regex_memory *out,
                             mla_error *err);
void regex_memory_close(regex_memory *memory); /* all 0 is allowed */

typedef pcre2_code regex;

/* pattern: [bytes], read, in Oniguruma's syntax (model/pattern.h).
 * out: owned, regex_free before the memory is closed. */
mla_status regex_compile(regex_memory *memory, const char *pattern, size_t bytes,
                         regex **out, mla_error *err);
void regex_free(regex *pattern); /* NULL is allowed */

typedef struct regex_matcher {
    regex_memory memory;
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
} regex_matcher;

/* In place: *matcher must not move until closed. Memory is class server. */
mla_status regex_matcher_open(regex_matcher *matcher, mlai_ledger *ledger, mla_error *err);
void regex_matcher_close(regex_matcher *matcher); /* all 0 is allowed */

/* The first match that is not empty in text: [bytes] (valid UTF-8) from `start` on;
 * begin == end == bytes where there is none. MLA_ERR_UNSUPPORTED where the text passes the
 * limits of matching. */
typedef struct regex_match {
    size_t begin, end;
} regex_match;
mla_status regex_find(regex_matcher *matcher, const regex *pattern, const char *text,
                      size_t bytes, size_t start, regex_match *out, mla_error *err);

#endif
