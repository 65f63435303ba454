/* size.h - arithmetic on sizes that says when it does not fit. */
#ifndef MLA_BASE_SIZE_H
#define MLA_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* false, and *out untouched by meaning (undefined), where the result does not fit. */
static inline bool mlai_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool mlai_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* For sums that are only told: the most where the sum does not fit. */
static inline uint64_t mlai_size_sum(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Up to the next multiple of unit, a power of two. */
static inline bool mlai_size_round_up(size_t value, size_t unit, size_t *out)
{
    bool fits = mlai_size_add(value, unit - 1, out);
    *out &= ~(unit - 1);
    return fits;
}

static inline bool mlai_is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static inline int64_t mlai_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

#endif
