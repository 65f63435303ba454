/* random.h - random numbers for tests that can be replayed: every test that draws any
 * prints its seed, and MLA_TEST_SEED=<seed> draws the same again.
 *
 *   rng random = rng_start("merge_is_associative");
 *   int64_t length = rng_between(&random, 0, 4097); */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

typedef struct rng {
    uint64_t state[4]; /* xoshiro256** of Blackman and Vigna, seeded by splitmix64 */
} rng;

rng rng_start(const char *name);    /* prints the seed beside the name */
rng rng_of_seed(uint64_t seed);     /* silent: for a stream that the caller names */
uint64_t rng_default_seed(void);    /* of MLA_TEST_SEED, else new in every process */
uint64_t rng_u64(rng *random);      /* all 64 bits */
double rng_unit(rng *random);       /* [0, 1) */
double rng_normal(rng *random);     /* mean 0, deviation 1 */
float rng_f32_of_bits(rng *random); /* any bit pattern: NaN and infinities too */

/* Inclusive at both ends; low <= high. */
int64_t rng_between(rng *random, int64_t low, int64_t high);
float rng_f32(rng *random, float low, float high);

#endif
