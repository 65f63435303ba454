/* plan_line.h - caps as one line of text and back: the one place that knows the grammar of
 * mla_plan_describe.
 *
 *   cpu:avx2 verify h128 d512+64 p64 fp8_g128 q:bf16 o:bf16 b32 q64 r2 t2048 n4096 s41984
 *   ctx131072 causal w0 x0.0721687824 i16
 *
 * Words in any order, each once. The device, s, w and i may be left out: 0, their default. */
#ifndef MLA_ATTENTION_PLAN_LINE_H
#define MLA_ATTENTION_PLAN_LINE_H

#include "base/status.h"

enum { MLAI_PLAN_LINE_BYTES = 256 }; /* room for every line, its NUL included */

typedef struct mlai_plan_line {
    mla_isa isa; /* of the device; 0 where the line names none */
    mla_caps caps;
} mlai_plan_line;

/* Returns the bytes that the line needs, NUL included; too small a text is truncated.
 * device: "cpu:avx2". An interleave of 0 or 1 is left out. */
size_t mlai_plan_line_format(const char *device, const mla_caps *caps, char *text,
                             size_t text_bytes);

/* text [text_bytes]: needs no NUL, and may hold none. Whether such caps are possible is
 * mlai_geometry_of's to say. MLA_ERR_ARGUMENT with the word and its column, from 1. */
mla_status mlai_plan_line_parse(const char *text, size_t text_bytes, mlai_plan_line *out,
                                mla_error *err);

#endif
