/* builder.c - marked text that grows. Marks are kept only once both kinds are there. */
#include <assert.h>
#include <string.h>

#include "model/jinja/text.h"

enum { FIRST_BYTES = 64 };

static mla_status move(jinja_builder *to, size_t capacity, bool is_marked, mla_error *err)
{
    void *data = to->data;
    void *marks = NULL;
    if (capacity > to->capacity) {
        MLAI_TRY(jinja_take(to->memory, capacity, 1, &data, err));
        if (to->bytes > 0) {
            memcpy(data, to->data, to->bytes);
        }
    }
    if (is_marked) {
        MLAI_TRY(jinja_take(to->memory, capacity, 1, &marks, err));
        if (to->bytes > 0 && to->marks) {
            memcpy(marks, to->marks, to->bytes);
        } else if (to->bytes > 0) {
            memset(marks, to->is_input, to->bytes);
        }
    }
    to->data = data;
    to->marks = marks;
    to->capacity = capacity;
    return MLA_OK;
}

static mla_status reserve(jinja_builder *to, size_t more, bool is_marked, mla_error *err)
{
    size_t capacity = to->capacity > 0 ? to->capacity : FIRST_BYTES;
    MLAI_CHECK(to->max_bytes == 0 || more <= to->max_bytes - to->bytes, MLA_ERR_UNSUPPORTED,
               "the rendered text is longer than the limit of %zu bytes", to->max_bytes);
    MLAI_CHECK(more <= SIZE_MAX / 4 - to->bytes, MLA_ERR_NO_MEMORY,
               "%zu bytes after %zu are more than memory can be", more, to->bytes);
    while (capacity - to->bytes < more) {
        capacity *= 2;
    }
    if (capacity == to->capacity && is_marked == (to->marks != NULL)) {
        return MLA_OK;
    }
    return move(to, capacity, is_marked, err);
}

mla_status jinja_builder_add(jinja_builder *to, jinja_text text, mla_error *err)
{
    if (text.bytes == 0) {
        return MLA_OK;
    }
    bool differs = to->bytes > 0 && text.is_input != to->is_input;
    bool is_marked = to->marks || text.marks || differs;
    MLAI_TRY(jinja_spend(to->memory, text.bytes, err));
    MLAI_TRY(reserve(to, text.bytes, is_marked, err));
    assert(to->data && (to->marks || !is_marked));
    memcpy(to->data + to->bytes, text.data, text.bytes);
    if (is_marked && text.marks) {
        memcpy(to->marks + to->bytes, text.marks, text.bytes);
    } else if (is_marked) {
        memset(to->marks + to->bytes, text.is_input, text.bytes);
    }
    to->is_input = is_marked ? to->is_input : text.is_input;
    to->bytes += text.bytes;
    return MLA_OK;
}

mla_status jinja_builder_add_like(jinja_builder *to, const char *data, size_t num,
                                  jinja_text like, size_t at, mla_error *err)
{
    bool is_input = like.marks ? like.marks[at] != 0 : like.is_input;
    return jinja_builder_add(
        to, (jinja_text){.data = data, .bytes = num, .is_input = is_input}, err);
}

jinja_text jinja_builder_text(const jinja_builder *from)
{
    return (jinja_text){.data = from->data ? from->data : "",
                        .bytes = from->bytes,
                        .marks = from->marks,
                        .is_input = from->is_input};
}

mla_status jinja_text_join(jinja_memory *memory, jinja_text a, jinja_text b,
                           jinja_text *out, mla_error *err)
{
    jinja_builder builder = {.memory = memory};
    MLAI_TRY(reserve(&builder, a.bytes + b.bytes, false, err));
    MLAI_TRY(jinja_builder_add(&builder, a, err));
    MLAI_TRY(jinja_builder_add(&builder, b, err));
    *out = jinja_builder_text(&builder);
    return MLA_OK;
}
