/* Every allocation of opening a chat template and of rendering a conversation fails, once and
 * for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/chat_template.h"
#include "support/books.h"
#include "support/fault.h"

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}, {\"role\": \"system\", "
    "\"content\": \"b\"}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", "
    "\"text\": "
    "\"c\"}, {\"type\": \"text\", \"text\": \"d\"}]}], \"tools\": [{\"x\": {\"y\": [1]}}]}";

static mla_status render(const mla_allocator *allocator, void *arg)
{
    const json_t *fields = arg;
    mla_context books = books_open(allocator);
    mla_error err = {0};
    chat_template *t = NULL;
    jinja_rendering made = {.text = {.bytes = 0}};
    mla_status status = chat_template_open(&books, TEST_MODELS "/demo", &t, &err);
    if (status == MLA_OK) {
        status = chat_template_render(t, fields, true, &made, &err);
        assert_true(status != MLA_OK || made.text.bytes > 0);
    }
    jinja_rendering_free(&made);
    chat_template_close(&t);
    assert_int_equal(books_now(&books), 0);
    assert_int_equal(err.status, status);
    return status;
}

static mla_status render_large(const mla_allocator *allocator, void *arg)
{
    static const char source[] =
        "{% set n = namespace(a='x') %}{% for i in range(14) %}{% set n.a = n.a ~ n.a %}"
        "{% endfor %}{{ n.a }}{{ tools | tojson(indent=2) }}{{ [3, 1, 2] | sort }}"
        "{{ messages | map(attribute='role') | unique | join }}{{ n.a.split('x') | length "
        "}}";
    mla_context books = books_open(allocator);
    mla_error err = {0};
    jinja_template *t = NULL;
    jinja_rendering made = {.text = {.bytes = 0}};
    const jinja_inputs inputs = {.fields = arg};
    mla_status status =
        jinja_template_compile(&books.ledger, source, sizeof source - 1, &t, &err);
    if (status == MLA_OK) {
        status = jinja_template_render(t, &inputs, &made, &err);
    }
    jinja_rendering_free(&made);
    jinja_template_free(&t);
    assert_int_equal(books_now(&books), 0);
    assert_int_equal(err.status, status);
    return status;
}

static void every_allocation_of_a_conversation_may_fail(void **state)
{
    (void)state;
    json_t *fields = json_loads(conversation, 0, NULL);
    assert_non_null(fields);
    assert_true(fault_every("a conversation", render, fields, FAULT_MUST_FAIL) > 20);
    assert_true(fault_every("a large text", render_large, fields, FAULT_MUST_FAIL) > 20);
    json_decref(fields);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_a_conversation_may_fail),
    };
    return cmocka_run_group_tests_name("chat", tests, NULL, NULL);
}
