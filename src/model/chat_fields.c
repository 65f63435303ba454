/* chat_fields.c - content in parts becomes one text, which every template understands. */
#include <string.h>

#include "model/chat_template_parts.h"

static mla_status no_memory(mla_error *err)
{
    return MLAI_FAIL(MLA_ERR_NO_MEMORY, "out of memory for a conversation");
}

/* The text of a part; NULL: it is another thing. */
static const json_t *text_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, "text");
    return type && strcmp(type, "text") == 0 && json_is_string(text) ? text : NULL;
}

static mla_status join_parts(const json_t *parts, size_t message, json_t **out,
                             mla_error *err)
{
    json_t *joined = json_string("");
    for (size_t i = 0; joined && i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const json_t *text = text_of(part);
        if (!text) {
            json_decref(joined);
            return MLAI_FAIL(MLA_ERR_ARGUMENT,
                             "message %zu: part %zu of its content is of type %s, and only "
                             "parts of type \"text\" are supported",
                             message, i, json_words_of(json_object_get(part, "type")).text);
        }
        json_t *longer =
            json_sprintf("%s%s", json_string_value(joined), json_string_value(text));
        json_decref(joined);
        joined = longer;
    }
    *out = joined;
    return joined ? MLA_OK : no_memory(err);
}

/* `messages` is our own copy; each message in it still is the caller's. */
static mla_status flatten_message(json_t *messages, size_t i, mla_error *err)
{
    json_t *text = NULL;
    json_t *message = json_array_get(messages, i);
    const json_t *content = json_object_get(message, "content");
    if (!json_is_array(content)) {
        return MLA_OK;
    }
    MLAI_TRY(join_parts(content, i, &text, err));
    json_t *copied = json_copy(message);
    if (json_object_set_new(copied, "content", text) != 0) {
        json_decref(copied);
        return no_memory(err);
    }
    return json_array_set_new(messages, i, copied) == 0 ? MLA_OK : no_memory(err);
}

mla_status chat_fields_flatten(const json_t *fields, json_t **out, mla_error *err)
{
    json_t *plain = json_copy((json_t *)(uintptr_t)fields); /* which it only reads */
    json_t *messages = json_copy(json_object_get(fields, "messages"));
    if (json_object_set_new(plain, "messages", messages) != 0) { /* plain may be NULL */
        json_decref(plain);
        return no_memory(err);
    }
    for (size_t i = 0; i < json_array_size(messages); i++) {
        mla_status status = flatten_message(messages, i, err);
        if (status != MLA_OK) {
            json_decref(plain);
            return status;
        }
    }
    if (json_scope_has_failed()) { /* a copy may lack what there was no memory for */
        json_decref(plain);
        return no_memory(err);
    }
    *out = plain;
    return MLA_OK;
}
