/* row_layout.c - latent rows to f32 and back, one format at a time. Rows may lie at any
 * address: nothing is read through a pointer wider than a byte. */
#include "attention/row_layout.h"

#include <math.h>
#include <string.h>

#include "base/convert.h"

enum { GROUP = 128 /* values that share a scale in fp8_g128 */ };

static const struct {
    mla_kv_format format;
    const char *name;
} names[] = {
    {MLA_KV_F32, "f32"},
    {MLA_KV_BF16, "bf16"},
    {MLA_KV_FP8, "fp8"},
    {MLA_KV_FP8_G128, "fp8_g128"},
};
enum { NUM_NAMES = sizeof names / sizeof names[0] };

const char *mlai_kv_format_name(mla_kv_format format)
{
    for (int i = 0; i < NUM_NAMES; i++) {
        if (names[i].format == format) {
            return names[i].name;
        }
    }
    return NULL;
}

mla_kv_format mlai_kv_format_of_name(const char *name)
{
    for (int i = 0; i < NUM_NAMES; i++) {
        if (strcmp(names[i].name, name) == 0) {
            return names[i].format;
        }
    }
    return (mla_kv_format)0;
}

static void decode_bf16(const unsigned char *from, int32_t num, float *to)
{
    for (int32_t i = 0; i < num; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * (size_t)i, sizeof bits);
        to[i] = mlai_f32_from_bf16(bits);
    }
}

static void encode_bf16(const float *from, int32_t num, unsigned char *to)
{
    for (int32_t i = 0; i < num; i++) {
        uint16_t bits = mlai_bf16_from_f32(from[i]);
        memcpy(to + 2 * (size_t)i, &bits, sizeof bits);
    }
}

static void decode_e4m3(const unsigned char *from, int32_t num, float scale, float *to)
{
    for (int32_t i = 0; i < num; i++) {
        to[i] = mlai_f32_from_e4m3(from[i]) * scale;
    }
}

static void encode_e4m3(const float *from, int32_t num, float scale, unsigned char *to)
{
    for (int32_t i = 0; i < num; i++) {
        to[i] = mlai_e4m3_from_f32(from[i] / scale);
    }
}

static void decode_groups(const unsigned char *row, int32_t latent_dim, int32_t rope_dim,
                          float *out)
{
    const unsigned char *scales = row + latent_dim;
    size_t num_groups = (size_t)latent_dim / GROUP;
    for (size_t g = 0; g < num_groups; g++) {
        float scale;
        memcpy(&scale, scales + g * sizeof scale, sizeof scale);
        decode_e4m3(row + g * GROUP, GROUP, scale, out + g * GROUP);
    }
    decode_bf16(scales + num_groups * sizeof(float), rope_dim, out + latent_dim);
}

/* The largest magnitude lands on 448. An infinity must not make the others zero: it
 * saturates under the scale of the finite values. */
static float group_scale(const float *in)
{
    float largest = 0.0F;
    for (int32_t i = 0; i < GROUP; i++) {
        if (isfinite(in[i])) {
            largest = fmaxf(largest, fabsf(in[i]));
        }
    }
    float scale = largest / MLAI_E4M3_MAX;
    return scale > 0.0F ? scale : 1.0F;
}

static void encode_groups(const float *in, int32_t latent_dim, int32_t rope_dim,
                          unsigned char *row)
{
    unsigned char *scales = row + latent_dim;
    size_t num_groups = (size_t)latent_dim / GROUP;
    for (size_t g = 0; g < num_groups; g++) {
        float scale = group_scale(in + g * GROUP);
        memcpy(scales + g * sizeof scale, &scale, sizeof scale);
        encode_e4m3(in + g * GROUP, GROUP, scale, row + g * GROUP);
    }
    encode_bf16(in + latent_dim, rope_dim, scales + num_groups * sizeof(float));
}

void mlai_row_decode(mla_kv_format format, int32_t latent_dim, int32_t rope_dim,
                     const void *row, float scale, float *out)
{
    int32_t width = latent_dim + rope_dim;
    switch (format) {
    case MLA_KV_F32:
        memcpy(out, row, (size_t)width * sizeof *out);
        return;
    case MLA_KV_BF16:
        decode_bf16(row, width, out);
        return;
    case MLA_KV_FP8:
        decode_e4m3(row, width, scale, out);
        return;
    case MLA_KV_FP8_G128:
        decode_groups(row, latent_dim, rope_dim, out);
        return;
    }
}

void mlai_row_encode(mla_kv_format format, int32_t latent_dim, int32_t rope_dim,
                     const float *in, float scale, void *row)
{
    int32_t width = latent_dim + rope_dim;
    switch (format) {
    case MLA_KV_F32:
        memcpy(row, in, (size_t)width * sizeof *in);
        return;
    case MLA_KV_BF16:
        encode_bf16(in, width, row);
        return;
    case MLA_KV_FP8:
        encode_e4m3(in, width, scale, row);
        return;
    case MLA_KV_FP8_G128:
        encode_groups(in, latent_dim, rope_dim, row);
        return;
    }
}
