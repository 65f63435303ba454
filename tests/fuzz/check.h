/* check.h - a promise that a fuzz target makes about its code: it stops the program in every
 * build, with or without NDEBUG, so that the fuzzer keeps the input. */
#ifndef FUZZ_CHECK_H
#define FUZZ_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_CHECK(promise)                                                                \
    do {                                                                                   \
        if (!(promise)) {                                                                  \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise);          \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

/* The fuzzer's name for it, not ours. */
// NOLINTNEXTLINE(readability-identifier-naming)
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes);

#endif
