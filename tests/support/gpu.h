/* gpu.h - suites on a real GPU. The level `sm80` is what this build runs on any CUDA device: it
 * needs one, and NVRTC to compile for it.
 *
 *   static int run_suite(void) { ... return cmocka_run_group_tests(tests, NULL, NULL); }
 *
 *   int main(void)
 *   {
 *       return gpu_suite("relations", run_suite); // on the CPU (level `cpu`), then on the GPU
 *   }
 *
 * Kernels are compiled once a run: their cache is a folder of the process that ends with it, or
 * MLA_TEST_CACHE, which stays. */
#ifndef TEST_GPU_H
#define TEST_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "mla/mla.h"
#include "support/levels.h"

const char *gpu_cache(void); /* NULL on the CPU */

/* Notes the level `sm80`; where there is a GPU, `run` on it is added to the failed tests. */
void gpu_level(levels *suite, int (*run)(void));

/* A suite of both levels; the exit status of the program. */
int gpu_suite(const char *name, int (*run)(void));

/* A suite of the GPU alone: the exit status is GPU_SKIPPED where there is none and none is
 * required. */
enum { GPU_SKIPPED = 77 };
int gpu_only_suite(const char *name, int (*run)(void));

/* What cuMemGetInfo says is free, or 0 where that says nothing: with MLA_TEST_CASES a tool runs,
 * which takes device memory of its own. Other processes must not run beside a test that asks. */
size_t gpu_free_bytes(void);

/* Compiles and primes plans of all `caps` in one session, many at a time, so that each is in
 * the cache; says how long it took. On the CPU: nothing. */
void gpu_warm(const mla_caps *caps, int num);

#endif
