/* rounding.h - what base/convert.h must give, by definition and not by bit tricks: the
 * values of the codes from their fields, and the code nearest to a value by comparing
 * distances in double, where all of them are exact. Ties go to the even code. */
#ifndef TEST_ROUNDING_H
#define TEST_ROUNDING_H

#include <stdint.h>

double rounding_value_of_e4m3(uint8_t code);  /* NaN for 0x7f and 0xff */
double rounding_value_of_bf16(uint16_t bits); /* NaN and infinities as such */
uint8_t rounding_nearest_e4m3(float value);
uint16_t rounding_nearest_bf16(float value); /* NaN: 0x7fc0 with the sign; see below */

/* Whether bf16 `bits` is right for a NaN: quiet, the sign and the upper payload kept. */
int rounding_is_bf16_of_nan(uint16_t bits, float value);

#endif
