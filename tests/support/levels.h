/* levels.h - suites that run once an instruction-set level, where a skip is never silent.
 *
 *   int main(void)
 *   {
 *       levels suite = levels_start("attend");
 *       if (levels_run(&suite, "c", true)) {
 *           suite.num_failed += run_suite(&mlai_cpu_kernels_c);
 *       }
 *       if (levels_run(&suite, "avx2", mlai_cpu_isa() & MLA_ISA_AVX2)) {
 *           suite.num_failed += run_suite(&mlai_cpu_kernels_avx2);
 *       }
 *       return levels_finish(&suite);
 *   }
 *
 * MLA_REQUIRE=c,avx2 names the levels that this machine must run: a named level that a
 * suite skips fails it. A suite that ran no level at all fails too. MLA_TEST_LEVELS=sm80 leaves
 * out all others. Level `cpu` is whatever is best on this CPU. */
#ifndef TEST_LEVELS_H
#define TEST_LEVELS_H

#include <stdbool.h>

enum { LEVELS_MAX = 8 };

typedef struct levels {
    const char *name;
    int num_failed; /* the caller adds failed tests here */
    int num_run, num_skipped;
    const char *skipped[LEVELS_MAX];
} levels;

levels levels_start(const char *name);

/* is_available, having noted it: run the level if it is true. */
bool levels_run(levels *suite, const char *level, bool is_available);

/* The exit status of the program: 0, or 1 having said why. */
int levels_finish(const levels *suite);

/* The same, with what MLA_REQUIRE would say (NULL: nothing is required). */
int levels_judge(const levels *suite, const char *required);

/* Whether MLA_REQUIRE names the level. */
bool levels_requires(const char *level);

/* How many of `all` drawn cases to run: fewer where MLA_TEST_CASES says so, for tools under
 * which each takes long. */
int test_cases(int all);

#endif
