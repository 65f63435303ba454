/* random.c - the generator behind random.h. */
#include "support/random.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t seed_of_text(const char *text)
{
    char *end = NULL;
    errno = 0;
    uint64_t seed = strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0') {
        fprintf(stderr, "MLA_TEST_SEED is '%s', which is no number\n", text);
        exit(2);
    }
    return seed;
}

uint64_t rng_default_seed(void)
{
    const char *text = getenv("MLA_TEST_SEED");
    if (text && *text) {
        return seed_of_text(text);
    }
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        fprintf(stderr, "no seed can be drawn: %s\n", strerror(errno));
        exit(2);
    }
    return seed;
}

rng rng_of_seed(uint64_t seed)
{
    rng random;
    for (int i = 0; i < 4; i++) {
        random.state[i] = splitmix(&seed);
    }
    return random;
}

rng rng_start(const char *name)
{
    uint64_t seed = rng_default_seed();
    printf("%s: MLA_TEST_SEED=0x%016" PRIx64 " replays this\n", name, seed);
    (void)fflush(stdout); /* still there if the test dies */
    return rng_of_seed(seed);
}

static uint64_t rotated(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

uint64_t rng_u64(rng *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotated(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotated(s[3], 45);
    return result;
}

double rng_unit(rng *random)
{
    return (double)(rng_u64(random) >> 11) * 0x1p-53;
}

double rng_normal(rng *random)
{
    const double two_pi = 6.283185307179586;
    double radius = sqrt(-2.0 * log(1.0 - rng_unit(random)));
    return radius * cos(two_pi * rng_unit(random));
}

float rng_f32_of_bits(rng *random)
{
    uint32_t bits = (uint32_t)(rng_u64(random) >> 32);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int64_t rng_between(rng *random, int64_t low, int64_t high)
{
    uint64_t num = (uint64_t)high - (uint64_t)low + 1; /* 0: all of them */
    uint64_t drawn = rng_u64(random);
    return (int64_t)((uint64_t)low + (num == 0 ? drawn : drawn % num));
}

float rng_f32(rng *random, float low, float high)
{
    return (float)((double)low + ((double)high - (double)low) * rng_unit(random));
}
