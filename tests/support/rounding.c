/* rounding.c - see rounding.h. Nothing here shares a line with base/convert. */
#include "support/rounding.h"

#include <math.h>
#include <string.h>

double rounding_value_of_e4m3(uint8_t code)
{
    int exponent = code >> 3 & 15;
    int mantissa = code & 7;
    double sign = code & 0x80 ? -1.0 : 1.0;
    if (exponent == 15 && mantissa == 7) {
        return (double)NAN;
    }
    return sign *
           (exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, exponent - 7 - 3));
}

double rounding_value_of_bf16(uint16_t bits)
{
    int exponent = bits >> 7 & 255;
    int mantissa = bits & 127;
    double sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == 255) {
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    }
    return sign * (exponent == 0 ? ldexp(mantissa, -126 - 7)
                                 : ldexp(128 + mantissa, exponent - 127 - 7));
}

uint8_t rounding_nearest_e4m3(float value)
{
    uint8_t sign = signbit(value) ? 0x80 : 0;
    double magnitude = fabs((double)value);
    if (isnan(value)) {
        return sign | 0x7f;
    }
    uint8_t best = 0;
    double best_distance = magnitude;
    for (uint8_t code = 1; code < 0x7f && !isinf(value); code++) {
        double distance = fabs(magnitude - rounding_value_of_e4m3(code));
        if (distance < best_distance || (distance == best_distance && code % 2 == 0)) {
            best = code;
            best_distance = distance;
        }
    }
    return sign | (isinf(value) ? 0x7e : best); /* no infinity: the largest */
}

/* The value that a code has as an upper neighbour: infinity counts as 2^128 then, which
 * is how IEEE 754 rounds to it. */
static double rung(uint16_t code)
{
    return code == 0x7f80 ? 0x1p128 : rounding_value_of_bf16(code);
}

uint16_t rounding_nearest_bf16(float value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs((double)value);
    if (isnan(value)) {
        return sign | 0x7fc0;
    }
    if (isinf(value)) {
        return sign | 0x7f80;
    }
    uint16_t low = 0;
    uint16_t high = 0x7f80;
    while (high - low > 1) { /* rung(low) <= magnitude < rung(high) */
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (rung(middle) <= magnitude) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double below = magnitude - rung(low);
    double above = rung(high) - magnitude;
    uint16_t even = low % 2 == 0 ? low : high;
    return sign | (below < above ? low : above < below ? high : even);
}

int rounding_is_bf16_of_nan(uint16_t bits, float value)
{
    uint32_t from;
    memcpy(&from, &value, sizeof from);
    return bits == (from >> 16 | 0x40U);
}
