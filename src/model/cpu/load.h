/* load.h - one number of a weight, wherever it lies: a mapped file promises no alignment. */
#ifndef MLA_MODEL_CPU_LOAD_H
#define MLA_MODEL_CPU_LOAD_H

#include <string.h>

#include "base/convert.h"
#include "mla/mla.h"

static inline float load_bf16(const void *data, size_t index)
{
    uint16_t bits;
    memcpy(&bits, (const unsigned char *)data + index * sizeof bits, sizeof bits);
    return mlai_f32_from_bf16(bits);
}

static inline float load_f32(const void *data, size_t index)
{
    float value;
    memcpy(&value, (const unsigned char *)data + index * sizeof value, sizeof value);
    return value;
}

static inline float load_weight(const void *data, mla_dtype dtype, size_t index)
{
    return dtype == MLA_F32 ? load_f32(data, index) : load_bf16(data, index);
}

#endif
