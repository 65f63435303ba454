/* noise.h - numbers without a pattern that a kernel could profit from, the same ones each
 * time. */
#ifndef MLA_CLI_NOISE_H
#define MLA_CLI_NOISE_H

#include <stdint.h>

/* 24 bits. state: any number before the first. */
static inline uint32_t noise_draw(uint32_t *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

/* In [-1, 1). */
static inline float noise_uniform(uint32_t *state)
{
    return (float)noise_draw(state) * 0x1p-23F - 1;
}

#endif
