/* planted.c - an object that is made and freed, rightly or with one mistake. */
#include "support/planted.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

const char *const planted_names[NUM_BUGS] = {
    [NONE] = "none",
    [LEAK] = "leak",
    [JUNK] = "junk",
    [UNCHECKED] = "unchecked",
    [TWICE] = "twice",
    [WRONG_SIZE] = "wrong_size",
    [WRONG_PURPOSE] = "wrong_purpose",
    [OVERRUN] = "overrun",
    [UNDERRUN] = "underrun",
    [WRITTEN_DEAD] = "written_dead",
    [SWALLOWED] = "swallowed",
    [WRONG_STATUS] = "wrong_status",
    [POISONED] = "poisoned",
    [LEAK_AT_REST] = "leak_at_rest",
    [NO_ALLOCATION] = "no_allocation",
};

const char *const planted_words[NUM_BUGS] = {
    [LEAK] = "leaked 1 blocks",
    [TWICE] = "RELEASED",
    [WRONG_SIZE] = "fault.c",
    [WRONG_PURPOSE] = "fault.c",
    [OVERRUN] = "GUARD",
    [UNDERRUN] = "ALIVE",
    [WRITTEN_DEAD] = "written after its release",
    [SWALLOWED] = "gave status 0",
    [WRONG_STATUS] = "gave status 6",
    [POISONED] = "after a failed one gave status 2",
    [LEAK_AT_REST] = "at first leaked 1 blocks",
    [NO_ALLOCATION] = "allocates nothing",
};

enum { NUM_LANES = PLANTED_LANES, LANE_BYTES = 4096 };

/* A stand-in for an object of the library: itself, a table, and a block a lane. */
typedef struct thing {
    const mla_allocator *allocator;
    unsigned char **lanes; /* [NUM_LANES] */
} thing;

static void *take(const mla_allocator *a, size_t bytes)
{
    return a->alloc(a->user, bytes, 64, MLA_SPACE_HOST, MLA_FOR_BINDING);
}

static void give(const mla_allocator *a, void *data, size_t bytes)
{
    if (data) {
        a->release(a->user, data, bytes, MLA_SPACE_HOST, MLA_FOR_BINDING);
    }
}

static void thing_free(thing *t)
{
    for (size_t i = 0; t->lanes && i < NUM_LANES; i++) {
        give(t->allocator, t->lanes[i], LANE_BYTES);
    }
    give(t->allocator, t->lanes, NUM_LANES * sizeof *t->lanes);
    give(t->allocator, t, sizeof *t);
}

static bool take_lanes(thing *t, enum bug bug)
{
    for (size_t i = 0; i < NUM_LANES; i++) {
        t->lanes[i] = take(t->allocator, LANE_BYTES);
        if (!t->lanes[i] && bug != UNCHECKED) {
            return false;
        }
        t->lanes[i][0] = 0; /* NOLINT: NULL only if the bug is UNCHECKED */
    }
    return true;
}

static mla_status thing_make(const mla_allocator *a, enum bug bug, thing **out)
{
    thing *t = take(a, sizeof *t);
    if (!t) {
        return MLA_ERR_NO_MEMORY;
    }
    *t = (thing){.allocator = a};
    t->lanes = take(a, NUM_LANES * sizeof *t->lanes);
    if (!t->lanes) {
        if (bug != LEAK) {
            thing_free(t);
        }
        return MLA_ERR_NO_MEMORY;
    }
    if (bug != JUNK) {
        memset(t->lanes, 0, NUM_LANES * sizeof *t->lanes);
    }
    if (!take_lanes(t, bug)) {
        thing_free(t);
        return MLA_ERR_NO_MEMORY;
    }
    *out = t;
    return MLA_OK;
}

/* Hides a pointer's origin: the compiler would see and refuse what is wrong on purpose. */
static unsigned char *opaque(void *data)
{
    unsigned char *volatile hidden = data;
    return hidden;
}

static void misuse(const mla_allocator *a, thing *t, enum bug bug)
{
    unsigned char *lane = opaque(t->lanes[3]);
    switch ((int)bug) {
    case TWICE:
        give(a, lane, LANE_BYTES);
        break;
    case WRONG_SIZE:
        t->lanes[3] = NULL;
        give(a, lane, LANE_BYTES - 1);
        break;
    case WRONG_PURPOSE:
        t->lanes[3] = NULL;
        a->release(a->user, lane, LANE_BYTES, MLA_SPACE_HOST, MLA_FOR_PLAN);
        break;
    case OVERRUN:
        lane[LANE_BYTES] = 1;
        break;
    case UNDERRUN:
        memset(lane - sizeof(uint64_t) * 5, 1, sizeof(uint64_t));
        break;
    case WRITTEN_DEAD:
        t->lanes[3] = NULL;
        a->release(a->user, lane, LANE_BYTES, MLA_SPACE_HOST, MLA_FOR_BINDING);
        lane[100] = 1;
        break;
    case LEAK_AT_REST:
        t->lanes[3] = NULL;
        break;
    default:
        break;
    }
}

static mla_status report(enum bug bug, mla_status status)
{
    static bool has_failed;
    if (bug == POISONED && has_failed) {
        return MLA_ERR_STATE;
    }
    has_failed = has_failed || status != MLA_OK;
    if (status != MLA_OK && bug == SWALLOWED) {
        return MLA_OK;
    }
    return status != MLA_OK && bug == WRONG_STATUS ? MLA_ERR_CORRUPT : status;
}

mla_status planted_scenario(const mla_allocator *a, void *arg)
{
    enum bug bug = *(const enum bug *)arg;
    if (bug == NO_ALLOCATION) {
        return MLA_OK;
    }
    thing *t = NULL;
    mla_status status = thing_make(a, bug, &t);
    if (status == MLA_OK) {
        misuse(a, t, bug);
        thing_free(t);
    }
    return report(bug, status);
}
