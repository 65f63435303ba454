/* jinja.c - see jinja.h. */
#include "support/jinja.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void keep(const jinja_text *text, jinja_result *out)
{
    out->bytes = text->bytes < sizeof out->text ? text->bytes : sizeof out->text - 1;
    for (size_t i = 0; i < out->bytes; i++) {
        bool is_input = text->marks ? text->marks[i] != 0 : text->is_input;
        out->text[i] = text->data[i];
        out->marks[i] = is_input ? 'i' : 't';
    }
    out->text[out->bytes] = out->marks[out->bytes] = '\0';
}

const jinja_result *jinja_result_of(const char *source, const char *fields,
                                    const jinja_limits *limits)
{
    static jinja_result result;
    mla_context books = books_open(NULL);
    jinja_template *t = NULL;
    jinja_rendering made = {.text = {.bytes = 0}};
    json_t *input = fields ? json_loads(fields, 0, NULL) : json_object();
    json_t *own = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");
    const jinja_inputs inputs = {.own = own,
                                 .fields = input,
                                 .limits = limits ? *limits : (jinja_limits){0},
                                 .now_seconds = 86400};
    assert_non_null(input);
    result = (jinja_result){.bytes = 0};
    result.status =
        jinja_template_compile(&books.ledger, source, strlen(source), &t, &result.err);
    if (result.status == MLA_OK) {
        result.status = jinja_template_render(t, &inputs, &made, &result.err);
        keep(&made.text, &result);
    }
    jinja_rendering_free(&made);
    jinja_template_free(&t);
    json_decref(input);
    json_decref(own);
    assert_int_equal(books_now(&books), 0);
    return &result;
}
