/* digits.h - decimal numbers in text, with their overflow. */
#ifndef MLA_CLI_DIGITS_H
#define MLA_CLI_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

/* Reads the digits at `text`, at least one. Returns what follows them; NULL where there is
 * none or the number is above `most`. */
static inline const char *digits_read(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, digit, &value) || value > most) {
            return (const char *)0;
        }
    }
    *out = value;
    return at > text ? at : (const char *)0;
}

#endif
