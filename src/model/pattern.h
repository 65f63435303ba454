/* pattern.h - a pre-tokenizer's regular expression, as its authors' engine (Oniguruma, Ruby
 * syntax) reads it, rewritten so that PCRE2 with UTF and UCP splits alike:
 *
 *   \s \S           the explicit White_Space class: UCP's own counts U+180E too
 *   \p{Han}         \p{sc:Han}: PCRE2's \p{Han} means Script_Extensions
 *   [A&&[^B]]       (?:(?![B])[A]): PCRE2 has no intersections
 *   $               (?=\n|\z): in Ruby's syntax the end of every line
 *   ^               (?m:^): and the start of every line
 *
 * What the two engines read differently and is not in this list is refused by name. */
#ifndef MLA_MODEL_PATTERN_H
#define MLA_MODEL_PATTERN_H

#include "base/status.h"

enum {
    PATTERN_MAX_BYTES = 1 << 14,
    PATTERN_GROWTH = 128, /* the output is at most 1 + this many times as long */
};

/* pattern: [bytes], read, UTF-8. out: [capacity], written NUL-terminated; a capacity of
 * 1 + PATTERN_GROWTH * bytes is always enough. */
mla_status pattern_rewrite(const char *pattern, size_t bytes, char *out, size_t capacity,
                           mla_error *err);

#endif
