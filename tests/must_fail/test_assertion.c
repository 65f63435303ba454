/* A test that fails: were it ever to pass, no test here would mean anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_failed_assertion_fails_the_program(void **state)
{
    (void)state;
    assert_int_equal(1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_assertion_fails_the_program)};
    return cmocka_run_group_tests_name("must_fail", tests, NULL, NULL);
}
