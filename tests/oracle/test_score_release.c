/* The likelihood of the first windows of a text is the reference's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/demo.h"

static void four_windows_are_as_likely_as_the_reference_says(void **state)
{
    (void)state;
    demo opened = demo_open(&(demo_options){.max_context = 1024});
    demo_check_score(&opened, 0, 4);
    demo_close(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_windows_are_as_likely_as_the_reference_says),
    };
    return cmocka_run_group_tests_name("score", tests, NULL, NULL);
}
