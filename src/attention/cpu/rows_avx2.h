/* rows_avx2.h - stored numbers to f32, sixteen at a time; the same bits as
 * mlai_row_decode gives. */
#ifndef MLA_ATTENTION_CPU_ROWS_AVX2_H
#define MLA_ATTENTION_CPU_ROWS_AVX2_H

#include <stddef.h>

#include "attention/cpu/kernels.h"

/* row: kv->row_bytes at any address -> to [D+R], 32-byte aligned. */
void mlai_row_decode_avx2(const mlai_kv_view *kv, const unsigned char *row, float *to);

/* from: num numbers, a multiple of 16 -> to, 32-byte aligned. e4m3 is scaled. */
void mlai_numbers_decode_avx2(mla_dtype dtype, const unsigned char *from, size_t num,
                              float scale, float *to);

#endif
