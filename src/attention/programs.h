/* programs.h - sets of device programs, so that preparation can check that what launched is
 * what was declared. A program is a bit; a backend has at most 64. */
#ifndef MLA_ATTENTION_PROGRAMS_H
#define MLA_ATTENTION_PROGRAMS_H

#include <stdatomic.h>
#include <stdint.h>

/* Several workers of one launch may note at once. */
typedef _Atomic uint64_t mlai_programs;

static inline void mlai_programs_note(mlai_programs *launched, uint64_t program)
{
    if (launched) {
        atomic_fetch_or_explicit(launched, program, memory_order_relaxed);
    }
}

#endif
