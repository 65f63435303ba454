/* append_rows.h - new rows into pages, one after the other: a later row of the same slot wins. */
#ifndef MLA_ATTENTION_CPU_APPEND_ROWS_H
#define MLA_ATTENTION_CPU_APPEND_ROWS_H

#include "attention/geometry.h"

void mlai_cpu_append_rows(const mlai_geometry *geometry, const mla_append_args *args);

#endif
