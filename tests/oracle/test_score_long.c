/* The likelihood of a text of 200,000 bytes is the reference's, window by window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/demo.h"

static void every_window_is_as_likely_as_the_reference_says(void **state)
{
    (void)state;
    demo opened = demo_open(&(demo_options){.max_context = 1024});
    demo_check_score(&opened, 0, 0);
    demo_close(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_window_is_as_likely_as_the_reference_says),
    };
    return cmocka_run_group_tests_name("score", tests, NULL, NULL);
}
