/* Every four bytes are a float: its bf16 and its e4m3 are the nearest by definition, and
 * converting back and forth again changes nothing. */
#include <math.h>
#include <string.h>

#include "base/convert.h"
#include "check.h"
#include "support/rounding.h"

static void check_bf16(float value)
{
    uint16_t bits = mlai_bf16_from_f32(value);
    if (isnan(value)) {
        FUZZ_CHECK(rounding_is_bf16_of_nan(bits, value));
    } else {
        FUZZ_CHECK(bits == rounding_nearest_bf16(value));
    }
    FUZZ_CHECK(mlai_bf16_from_f32(mlai_f32_from_bf16(bits)) == bits);
}

static void check_e4m3(float value)
{
    uint8_t code = mlai_e4m3_from_f32(value);
    FUZZ_CHECK(code == rounding_nearest_e4m3(value));
    FUZZ_CHECK(mlai_e4m3_from_f32(mlai_f32_from_e4m3(code)) == code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    float value;
    for (size_t at = 0; at + sizeof value <= num_bytes; at += sizeof value) {
        memcpy(&value, data + at, sizeof value);
        check_bf16(value);
        check_e4m3(value);
    }
    return 0;
}
