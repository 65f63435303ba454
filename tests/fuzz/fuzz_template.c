/* Any bytes as a template, a zero byte, and the fields of a conversation in JSON: compiled or
 * refused, rendered or refused, in one sentence that names a line or the template; nothing stays
 * in the books, and the rendered text is UTF-8 with marks for all of it. */
#include <string.h>

#include "check.h"
#include "model/jinja/template.h"
#include "model/utf8.h"
#include "support/books.h"

static const char usual[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a <b> \\u00e9\"}, {\"role\": "
    "\"assistant\", \"content\": null, \"tool_calls\": [{\"x\": [1, 2.5, true]}]}]}";

static void check_text(const jinja_text *text)
{
    unsigned sum = 0;
    for (size_t i = 0; text->marks && i < text->bytes; i++) {
        sum |= text->marks[i]; /* so that a sanitizer sees each read */
    }
    FUZZ_CHECK(sum <= 1);
    FUZZ_CHECK(utf8_first_bad(text->data, text->bytes) == text->bytes);
}

static void render(const jinja_template *t, const json_t *fields)
{
    mla_error err = {0};
    jinja_rendering made;
    const jinja_inputs inputs = {.fields = fields,
                                 .now_seconds = 1,
                                 .limits = {.max_memory_bytes = 1 << 22,
                                            .max_output_bytes = 1 << 16,
                                            .max_steps = 100000}};
    if (jinja_template_render(t, &inputs, &made, &err) == MLA_OK) {
        check_text(&made.text);
    } else {
        FUZZ_CHECK(strncmp(err.message, "the chat template", 17) == 0);
    }
    jinja_rendering_free(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t num_bytes)
{
    mla_context books = books_open(NULL);
    mla_error err = {0};
    jinja_template *t = NULL;
    const char *source = (const char *)data;
    const char *end = num_bytes > 0 ? memchr(source, 0, num_bytes) : NULL;
    size_t bytes = end ? (size_t)(end - source) : num_bytes;
    json_t *fields = end ? json_loadb(end + 1, num_bytes - bytes - 1, 0, NULL)
                         : json_loads(usual, 0, NULL);
    if (jinja_template_compile(&books.ledger, source, bytes, &t, &err) == MLA_OK) {
        render(t, json_is_object(fields) ? fields : NULL);
    } else {
        FUZZ_CHECK(strncmp(err.message, "the chat template", 17) == 0);
    }
    json_decref(fields);
    jinja_template_free(&t);
    FUZZ_CHECK(books_now(&books) == 0);
    return 0;
}
