/* convert.h - the three storage formats of a number and their exact conversions.
 *
 *   f32   IEEE binary32
 *   bf16  its upper 16 bits
 *   e4m3  1 sign, 4 exponent (bias 7), 3 mantissa bits; no infinity; S.1111.111 is NaN;
 *         largest 448, smallest subnormal 2^-9 (OCP 8-bit floating point, revision 1.0)
 *
 * Rounding is to nearest, ties to even. e4m3 saturates: a finite or infinite value beyond
 * 448 becomes +-448. NaN stays NaN (bf16: quiet, sign and upper payload kept; e4m3: 0x7f
 * with the sign). */
#ifndef MLA_BASE_CONVERT_H
#define MLA_BASE_CONVERT_H

#include <stdint.h>
#include <string.h>

#define MLAI_E4M3_MAX 448.0F

static inline uint32_t mlai_bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float mlai_f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float mlai_f32_from_bf16(uint16_t bits)
{
    return mlai_f32_of_bits((uint32_t)bits << 16);
}

static inline uint16_t mlai_bf16_from_f32(float value)
{
    uint32_t bits = mlai_bits_of_f32(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return (uint16_t)(bits >> 16 | 0x0040U);
    }
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

extern const float mlai_e4m3_table[256]; /* value of each code */

static inline float mlai_f32_from_e4m3(uint8_t code)
{
    return mlai_e4m3_table[code];
}

uint8_t mlai_e4m3_from_f32(float value);

#endif
