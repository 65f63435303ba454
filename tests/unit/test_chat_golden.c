/* Templates in the style of each family, over many conversations, against what Python's jinja2
 * printed (tests/jinja/make_goldens.py): every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/file.h"
#include "model/jinja/template.h"
#include "support/books.h"

static json_t *load(void)
{
    json_error_t error;
    json_t *root = json_load_file(TEST_DATA "/templates/goldens.json", 0, &error);
    if (!root) {
        fail_msg("%s", error.text);
    }
    return root;
}

/* wanted: a text, or null where jinja2 refuses. */
static void check(const jinja_template *t, const json_t *goldens, const char *name,
                  size_t i, const json_t *wanted)
{
    mla_error err = {0};
    jinja_rendering made;
    const jinja_inputs inputs = {.own = json_object_get(goldens, "own"),
                                 .fields =
                                     json_array_get(json_object_get(goldens, "fields"), i)};
    mla_status status = jinja_template_render(t, &inputs, &made, &err);
    bool is_same =
        json_is_null(wanted)
            ? status != MLA_OK
            : status == MLA_OK && made.text.bytes == json_string_length(wanted) &&
                  memcmp(made.text.data, json_string_value(wanted), made.text.bytes) == 0;
    if (!is_same) {
        fail_msg("%s, conversation %zu: \"%.*s\" %s\nwanted \"%s\"", name, i,
                 (int)made.text.bytes, made.text.data, err.message,
                 json_is_null(wanted) ? "a refusal" : json_string_value(wanted));
    }
    jinja_rendering_free(&made);
}

static size_t check_template(mla_context *books, const json_t *goldens, const char *name,
                             const json_t *texts)
{
    mla_error err = {0};
    file_text file = {0};
    jinja_template *t = NULL;
    if (file_read(&books->ledger, TEST_DATA "/templates", name, 1 << 20, &file, &err) !=
            MLA_OK ||
        jinja_template_compile(&books->ledger, file.text, file.bytes, &t, &err) != MLA_OK) {
        fail_msg("%s: %s", name, err.message);
    }
    for (size_t i = 0; i < json_array_size(texts); i++) {
        check(t, goldens, name, i, json_array_get(texts, i));
    }
    jinja_template_free(&t);
    file_text_free(&file);
    return json_array_size(texts);
}

static void every_family_prints_what_jinja2_prints(void **state)
{
    (void)state;
    json_t *goldens = load();
    mla_context books = books_open(NULL);
    size_t num = 0;
    const char *name;
    json_t *texts;
    json_object_foreach(json_object_get(goldens, "texts"), name, texts)
    {
        num += check_template(&books, goldens, name, texts);
    }
    assert_true(num >= 400);
    assert_int_equal(books_now(&books), 0);
    json_decref(goldens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_prints_what_jinja2_prints),
    };
    return cmocka_run_group_tests_name("chat_golden", tests, NULL, NULL);
}
