/* byte_sum.h - a sum of products that remembers when it did not fit, so that a long count needs
 * one check at its end. */
#ifndef MLA_MODEL_BYTE_SUM_H
#define MLA_MODEL_BYTE_SUM_H

#include "base/size.h"

typedef struct byte_sum {
    size_t bytes; /* meaningless once is_overflown */
    bool is_overflown;
} byte_sum;

static inline size_t byte_sum_product(byte_sum *sum, size_t a, size_t b)
{
    size_t product = 0;
    if (!mlai_size_mul(a, b, &product)) {
        sum->is_overflown = true;
    }
    return product;
}

/* sum += num * item_bytes */
static inline void byte_sum_add(byte_sum *sum, size_t num, size_t item_bytes)
{
    size_t product = byte_sum_product(sum, num, item_bytes);
    if (!mlai_size_add(sum->bytes, product, &sum->bytes)) {
        sum->is_overflown = true;
    }
}

static inline void byte_sum_join(byte_sum *sum, byte_sum part)
{
    byte_sum_add(sum, 1, part.bytes);
    sum->is_overflown = sum->is_overflown || part.is_overflown;
}

#endif
