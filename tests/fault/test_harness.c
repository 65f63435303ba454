/* The fault harness itself: a right scenario passes, and each planted bug is found.
 *
 * A planted bug runs in a child process, this same program with the bug's name, because some
 * of them crash. Run one by hand: fault_harness overrun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ledger.h"
#include "support/fault.h"

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

static const char *const bug_names[NUM_BUGS] = {
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

/* What the harness must say of it; NULL where the crash itself is the finding. */
static const char *const bug_words[NUM_BUGS] = {
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

enum { NUM_LANES = 7, LANE_BYTES = 4096 };

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

static mla_status scenario(const mla_allocator *a, void *arg)
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

static void a_right_scenario_passes_every_trial(void **state)
{
    (void)state;
    enum bug bug = NONE;
    assert_int_equal(fault_every("thing", scenario, &bug, FAULT_MUST_FAIL),
                     2 * (2 + NUM_LANES));
}

/* Asks a second time when it is refused, and counts what it then says. */
static mla_status stubborn(const mla_allocator *a, void *arg)
{
    int *num_refused = arg;
    void *data = take(a, 8);
    if (!data) {
        data = take(a, 8);
    }
    if (!data) {
        ++*num_refused;
        return MLA_ERR_NO_MEMORY;
    }
    give(a, data, 8);
    return MLA_OK;
}

static void a_failure_once_is_followed_by_memory_and_one_for_good_is_not(void **state)
{
    (void)state;
    int num_refused = 0;
    assert_int_equal(fault_every("stubborn", stubborn, &num_refused, FAULT_MAY_COPE), 2);
    assert_int_equal(num_refused, 1);
}

static enum bug bug_to_run; /* in the child */

static void run_the_bug(void **state)
{
    (void)state;
    (void)fault_every("thing", scenario, &bug_to_run, FAULT_MUST_FAIL);
}

static int run_child(const char *name)
{
    for (int i = 0; i < NUM_BUGS; i++) {
        if (strcmp(name, bug_names[i]) == 0) {
            bug_to_run = (enum bug)i;
        }
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(run_the_bug)};
    return cmocka_run_group_tests_name(name, tests, NULL, NULL) != 0;
}

/* The child's exit: 0 only if it found nothing. Its words go into text. */
static bool child_passes(enum bug bug, char *text, size_t text_bytes)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)dup2(pipes[1], STDERR_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        (void)execl("/proc/self/exe", "fault_harness", bug_names[bug], (char *)NULL);
        _exit(127);
    }
    (void)close(pipes[1]);
    size_t used = 0;
    char rest[512];
    for (ssize_t got = 1; got > 0;) {
        bool is_full = used + 1 >= text_bytes;
        got = read(pipes[0], is_full ? rest : text + used,
                   is_full ? sizeof rest : text_bytes - 1 - used);
        used += got > 0 && !is_full ? (size_t)got : 0;
    }
    text[used] = '\0';
    (void)close(pipes[0]);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_false(WIFEXITED(how) && WEXITSTATUS(how) == 127);
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

static void every_planted_bug_is_found_and_named(void **state)
{
    (void)state;
    char text[1 << 10];
    for (int i = NONE + 1; i < NUM_BUGS; i++) {
        if (child_passes((enum bug)i, text, sizeof text)) {
            fail_msg("the planted bug %s was not found", bug_names[i]);
        }
        bool is_sanitizers = strstr(text, "Sanitizer") != NULL; /* it was faster */
        if (bug_words[i] && !strstr(text, bug_words[i]) && !is_sanitizers) {
            fail_msg("of the planted bug %s it is not said '%s' but: %s", bug_names[i],
                     bug_words[i], text);
        }
    }
}

static void a_child_without_a_bug_passes(void **state)
{
    (void)state;
    char text[1 << 10];
    assert_true(child_passes(NONE, text, sizeof text));
}

/* The ledger hands the harness's own blocks on, and its books are even afterwards. */
static mla_status ledger_scenario(const mla_allocator *allocator, void *arg)
{
    (void)arg;
    mlai_ledger ledger;
    mla_status status = mlai_ledger_init(&ledger, allocator, 0, NULL);
    void *block = NULL;
    void *zeroed = NULL;
    void *hooked = NULL;
    if (status == MLA_OK) {
        status = mlai_ledger_take(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN, 100, 32, "a block",
                                  &block, NULL);
    }
    if (status == MLA_OK) {
        status =
            mlai_ledger_take_zeroed(&ledger, MLA_FOR_KV, 3, 70, "zeros", &zeroed, NULL);
    }
    if (status == MLA_OK) {
        hooked = mlai_ledger_hook_alloc(&ledger, MLA_FOR_CONTEXT, 33);
        status = hooked ? MLA_OK : MLA_ERR_NO_MEMORY;
    }
    mlai_ledger_hook_free(&ledger, hooked);
    mlai_ledger_give(&ledger, MLA_SPACE_HOST, MLA_FOR_KV, 210, zeroed);
    mlai_ledger_give(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN, 100, block);
    for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
        assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, (mla_purpose)purpose) == 0);
    }
    assert_true(ledger.space_now_bytes[MLA_SPACE_HOST] == 0);
    return status;
}

static void the_ledger_is_even_after_every_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(fault_every("ledger", ledger_scenario, NULL, FAULT_MUST_FAIL), 2 * 3);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return run_child(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_scenario_passes_every_trial),
        cmocka_unit_test(a_failure_once_is_followed_by_memory_and_one_for_good_is_not),
        cmocka_unit_test(a_child_without_a_bug_passes),
        cmocka_unit_test(every_planted_bug_is_found_and_named),
        cmocka_unit_test(the_ledger_is_even_after_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("harness", tests, NULL, NULL);
}
