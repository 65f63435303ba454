/* append_rows.c - f32 and bf16 rows become stored rows: see append_rows.h. */
#include "attention/cpu/append_rows.h"

#include <string.h>

#include "attention/row_layout.h"
#include "base/convert.h"

enum { PIECE = 128 /* values converted at a time: a group of fp8_g128 */ };

static void widen(const uint16_t *from, int32_t num, float *to)
{
    for (int32_t i = 0; i < num; i++) {
        to[i] = mlai_f32_from_bf16(from[i]);
    }
}

/* Values [0, num) of one element size, in pieces. */
static void encode_plain(mla_kv_format format, const uint16_t *from, int32_t num,
                         float scale, unsigned char *to)
{
    float piece[PIECE];
    for (int32_t begin = 0; begin < num; begin += PIECE) {
        int32_t count = num - begin < PIECE ? num - begin : PIECE;
        widen(from + begin, count, piece);
        mlai_row_encode(format, count, 0, piece, scale,
                        to + mla_kv_row_bytes(format, begin, 0));
    }
}

/* A group at a time: its codes and its scale lie apart in a row. */
static void encode_groups(const uint16_t *from, int32_t latent_dim, int32_t rope_dim,
                          unsigned char *to)
{
    float piece[PIECE];
    unsigned char packed[PIECE + sizeof(float)];
    unsigned char *scales = to + latent_dim;
    for (int32_t begin = 0; begin < latent_dim; begin += PIECE) {
        widen(from + begin, PIECE, piece);
        mlai_row_encode(MLA_KV_FP8_G128, PIECE, 0, piece, 1.0F, packed);
        memcpy(to + begin, packed, PIECE);
        memcpy(scales + (size_t)(begin / PIECE) * sizeof(float), packed + PIECE,
               sizeof(float));
    }
    unsigned char *rope = to + mla_kv_row_bytes(MLA_KV_FP8_G128, latent_dim, 0);
    memcpy(rope, from + latent_dim, (size_t)rope_dim * sizeof *from);
}

static void append_row(const mla_caps *caps, const mla_append_args *args, int64_t index,
                       float scale, unsigned char *to)
{
    int32_t width = caps->latent_dim + caps->rope_dim;
    if (args->rows_dtype == MLA_F32) {
        const float *rows = args->rows.data;
        mlai_row_encode(caps->kv_format, caps->latent_dim, caps->rope_dim,
                        rows + index * width, scale, to);
        return;
    }
    const uint16_t *row = (const uint16_t *)args->rows.data + index * width;
    if (caps->kv_format == MLA_KV_FP8_G128) {
        encode_groups(row, caps->latent_dim, caps->rope_dim, to);
    } else {
        encode_plain(caps->kv_format, row, width, scale, to);
    }
}

void mlai_cpu_append_rows(const mlai_geometry *geometry, const mla_append_args *args)
{
    const mla_caps *caps = &geometry->caps;
    const int64_t *slots = args->slots.data;
    unsigned char *pool = args->kv_pool.data;
    float scale = args->kv_scale.data ? *(const float *)args->kv_scale.data : 1.0F;
    for (int64_t i = 0; i < args->num_rows; i++) {
        int64_t page = slots[i] / caps->page_tokens;
        int64_t offset = slots[i] % caps->page_tokens;
        if (slots[i] >= 0 && page < caps->num_pages) {
            append_row(caps, args, i, scale,
                       pool + (size_t)page * geometry->page_stride_bytes +
                           (size_t)offset * geometry->row_bytes);
        }
    }
}
