/* row_layout.h - how one latent row lies in memory in each KV format, as pure functions.
 *
 *   f32       (D+R) f32
 *   bf16      (D+R) bf16
 *   fp8       (D+R) e4m3                                   value = e4m3 * kv_scale
 *   fp8_g128  D e4m3 | D/128 f32 scales | R bf16           value = e4m3 * its group's scale
 */
#ifndef MLA_ATTENTION_ROW_LAYOUT_H
#define MLA_ATTENTION_ROW_LAYOUT_H

#include "mla/mla.h"

/* "f32", "bf16", "fp8", "fp8_g128"; NULL where it is none. */
const char *mlai_kv_format_name(mla_kv_format format);
/* 0 where no format has that name. */
mla_kv_format mlai_kv_format_of_name(const char *name);

/* row: mla_kv_row_bytes(...) of storage -> out [D+R] f32. scale: fp8 only. */
void mlai_row_decode(mla_kv_format format, int32_t latent_dim, int32_t rope_dim,
                     const void *row, float scale, float *out);

/* in [D+R] f32 -> row. The rounding is that of mla_append. */
void mlai_row_encode(mla_kv_format format, int32_t latent_dim, int32_t rope_dim,
                     const float *in, float scale, void *row);

#endif
