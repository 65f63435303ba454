/* planted.h - a scenario for the fault harness with a bug to choose: each but NONE must be
 * found by it. */
#ifndef TEST_PLANTED_H
#define TEST_PLANTED_H

#include "mla/mla.h"

enum bug {
    NONE,
    LEAK,          /* the failing path forgets a block */
    JUNK,          /* the lanes are not cleared: the failing path releases junk */
    UNCHECKED,     /* an allocation's result is used unseen */
    TWICE,         /* a block is released twice */
    WRONG_SIZE,    /* a block is released with other bytes than it was taken with */
    WRONG_PURPOSE, /* or another purpose */
    OVERRUN,       /* one byte past the end is written */
    UNDERRUN,      /* one byte before the start */
    WRITTEN_DEAD,  /* a block is written after its release */
    SWALLOWED,     /* the failure is reported as success */
    WRONG_STATUS,  /* or as another failure */
    POISONED,      /* after a failure the next clean run fails */
    LEAK_AT_REST,  /* the clean run leaks */
    NO_ALLOCATION, /* the scenario allocates nothing */
    NUM_BUGS
};

enum { PLANTED_LANES = 7 }; /* a clean run allocates 2 blocks and one a lane */

extern const char *const planted_names[NUM_BUGS];

/* What the harness must say of it. NULL where the crash itself is the finding. */
extern const char *const planted_words[NUM_BUGS];

/* A fault_scenario; arg: const enum bug *. */
mla_status planted_scenario(const mla_allocator *allocator, void *arg);

#endif
