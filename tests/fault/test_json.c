/* Every allocation of a parse fails, once and for good. jansson alone goes on with the text that
 * it could not keep, and writes behind what it allocated for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/json.h"
#include "support/books.h"
#include "support/fault.h"

static const char text[] =
    "{\"a long key of an object, which grows more than once\": \"\\u00e9\\n\\t\\\" and a "
    "value "
    "that does so, too, and then some more\", \"numbers\": [123456789012345678, "
    "1.2345678901234567890123456789e+100, -0.00000000000000000000000000000001], \"z\": "
    "[{}, [], null, true, \"\", \"0123456789abcdef0123456789abcdef0123456789abcdef\\\\\"]}";

static mla_status parse(const mla_allocator *allocator, void *arg)
{
    mla_context books = books_open(allocator);
    json_error_t error;
    (void)arg;
    json_scope before = json_scope_enter(&books.ledger, MLA_FOR_SERVER);
    json_t *root = json_scope_parse(text, sizeof text - 1, JSON_REJECT_DUPLICATES, &error);
    bool has_failed = json_scope_has_failed();
    json_scope_leave(before);
    assert_int_equal(root == NULL, has_failed);
    assert_true(!root || json_object_size(root) == 3);
    json_decref(root);
    assert_int_equal(books_now(&books), 0);
    return has_failed ? MLA_ERR_NO_MEMORY : MLA_OK;
}

static void every_allocation_of_a_parse_may_fail(void **state)
{
    (void)state;
    assert_true(fault_every("a parse", parse, NULL, FAULT_MUST_FAIL) > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_parse_may_fail),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
