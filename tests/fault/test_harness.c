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
#include "support/planted.h"

static void a_right_scenario_passes_every_trial(void **state)
{
    (void)state;
    enum bug bug = NONE;
    assert_int_equal(fault_every("thing", planted_scenario, &bug, FAULT_MUST_FAIL),
                     2 * (2 + PLANTED_LANES));
}

/* Asks a second time when it is refused, and counts what it then says. */
static mla_status stubborn(const mla_allocator *a, void *arg)
{
    int *num_refused = arg;
    void *data = a->alloc(a->user, 8, 8, MLA_SPACE_HOST, MLA_FOR_PLAN);
    if (!data) {
        data = a->alloc(a->user, 8, 8, MLA_SPACE_HOST, MLA_FOR_PLAN);
    }
    if (!data) {
        ++*num_refused;
        return MLA_ERR_NO_MEMORY;
    }
    a->release(a->user, data, 8, MLA_SPACE_HOST, MLA_FOR_PLAN);
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
    (void)fault_every("thing", planted_scenario, &bug_to_run, FAULT_MUST_FAIL);
}

static int run_child(const char *name)
{
    for (int i = 0; i < NUM_BUGS; i++) {
        if (strcmp(name, planted_names[i]) == 0) {
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
        (void)execl("/proc/self/exe", "fault_harness", planted_names[bug], (char *)NULL);
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
            fail_msg("the planted bug %s was not found", planted_names[i]);
        }
        bool is_sanitizers = strstr(text, "Sanitizer") != NULL; /* it was faster */
        if (planted_words[i] && !strstr(text, planted_words[i]) && !is_sanitizers) {
            fail_msg("of the planted bug %s it is not said '%s' but: %s", planted_names[i],
                     planted_words[i], text);
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
