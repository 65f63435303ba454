/* footprint_parts.h - between the files that count a footprint. */
#ifndef MLA_MODEL_FOOTPRINT_PARTS_H
#define MLA_MODEL_FOOTPRINT_PARTS_H

#include "model/byte_sum.h"
#include "model/footprint.h"

/* One more part of a class. name: static storage. */
void footprint_add(footprint *print, mla_purpose purpose, const char *name, byte_sum bytes);

/* tokens, and classes kv and drafter. Weights are there. */
mla_status footprint_count_rows(const profile *self, footprint *print, mla_error *err);

/* Class activations, and the peak of session. tokens are there. */
mla_status footprint_count_activations(const profile *self, footprint *print,
                                       mla_error *err);

#endif
