/* digits.c - repr of a double, as Python has it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/jinja/value.h"

enum { MAX_DIGITS = 17, MAX_PLAIN = 16, MIN_PLAIN = -4 };

/* "d.ddde+xx" with the fewest digits that give the number back. */
static void find_shortest(double real, char *out, size_t bytes)
{
    for (int digits = 0; digits < MAX_DIGITS; digits++) {
        (void)snprintf(out, bytes, "%.*e", digits, real);
        if (strtod(out, NULL) == real) {
            return;
        }
    }
}

static size_t put(char *out, size_t at, const char *from, size_t num)
{
    memcpy(out + at, from, num);
    return at + num;
}

static size_t put_zeros(char *out, size_t at, int num)
{
    for (int i = 0; i < num; i++) {
        out[at++] = '0';
    }
    return at;
}

/* digits: [num] without a point, which stands after the first and is moved by `exponent`. */
static size_t lay_out(const char *digits, int num, int exponent, char *out, size_t at)
{
    if (exponent < 0) {
        at = put(out, at, "0.", 2);
        at = put_zeros(out, at, -exponent - 1);
        return put(out, at, digits, (size_t)num);
    }
    int whole = exponent + 1;
    if (num <= whole) {
        at = put(out, at, digits, (size_t)num);
        at = put_zeros(out, at, whole - num);
        return put(out, at, ".0", 2);
    }
    at = put(out, at, digits, (size_t)whole);
    at = put(out, at, ".", 1);
    return put(out, at, digits + whole, (size_t)(num - whole));
}

jinja_digits jinja_digits_of(double real)
{
    jinja_digits out = {.text = ""};
    char shortest[40];
    char digits[MAX_DIGITS + 1];
    if (!isfinite(real)) {
        (void)snprintf(out.text, sizeof out.text, "%s",
                       isnan(real) ? "nan" : (real < 0 ? "-inf" : "inf"));
        return out;
    }
    find_shortest(fabs(real), shortest, sizeof shortest);
    char *e = strchr(shortest, 'e');
    int exponent = (int)strtod(e + 1, NULL);
    int num = 0;
    for (const char *c = shortest; c < e; c++) {
        if (*c != '.') {
            digits[num++] = *c;
        }
    }
    size_t at = signbit(real) ? put(out.text, 0, "-", 1) : 0;
    if (exponent >= MIN_PLAIN && exponent < MAX_PLAIN) {
        at = lay_out(digits, num, exponent, out.text, at);
        out.text[at] = '\0';
    } else {
        at = put(out.text, at, digits, 1);
        if (num > 1) {
            at = put(out.text, at, ".", 1);
            at = put(out.text, at, digits + 1, (size_t)(num - 1));
        }
        (void)snprintf(out.text + at, sizeof out.text - at, "e%c%02d",
                       exponent < 0 ? '-' : '+', abs(exponent));
    }
    return out;
}
