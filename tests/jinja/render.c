/* render.c - renders templates for a script that compares them with another renderer. Each
 * line of standard input is {"template": ..., "own": {...}, "fields": {...}}, each line of
 * standard output {"text": ..., "input": [[begin, end), ...]} or {"error": ...}. */
#include <stdio.h>
#include <stdlib.h>

#include "model/jinja/template.h"
#include "support/books.h"

enum { MAX_LINE_BYTES = 1 << 24 };

/* The ranges of bytes that came from the input. */
static json_t *marks_of(const jinja_text *text)
{
    json_t *ranges = json_array();
    size_t begin = 0;
    bool is_inside = false;
    for (size_t i = 0; i <= text->bytes; i++) {
        bool is_input = i < text->bytes && (text->marks ? text->marks[i] : text->is_input);
        if (is_inside && !is_input) {
            (void)json_array_append_new(
                ranges, json_pack("[I, I]", (json_int_t)begin, (json_int_t)i));
        }
        begin = is_input && !is_inside ? i : begin;
        is_inside = is_input;
    }
    return ranges;
}

static json_t *render(mla_context *books, const json_t *job)
{
    mla_error err = {0};
    jinja_template *t = NULL;
    jinja_rendering made = {.text = {.bytes = 0}};
    const json_t *source = json_object_get(job, "template");
    const jinja_inputs inputs = {.own = json_object_get(job, "own"),
                                 .fields = json_object_get(job, "fields")};
    json_t *answer = NULL;
    if (jinja_template_compile(&books->ledger, json_string_value(source),
                               json_string_length(source), &t, &err) != MLA_OK ||
        jinja_template_render(t, &inputs, &made, &err) != MLA_OK) {
        answer = json_pack("{s:s}", "error", err.message);
    } else {
        answer = json_pack("{s:s%, s:o}", "text", made.text.data, made.text.bytes, "input",
                           marks_of(&made.text));
    }
    jinja_rendering_free(&made);
    jinja_template_free(&t);
    return answer;
}

int main(void)
{
    static char line[MAX_LINE_BYTES];
    mla_context books = books_open(NULL);
    while (fgets(line, sizeof line, stdin)) {
        json_t *job = json_loads(line, JSON_ALLOW_NUL, NULL);
        json_t *answer = render(&books, job);
        if (json_dumpf(answer, stdout, JSON_COMPACT) != 0 || putchar('\n') == EOF) {
            return 2;
        }
        json_decref(answer);
        json_decref(job);
    }
    return books_now(&books) == 0 ? 0 : 1;
}
