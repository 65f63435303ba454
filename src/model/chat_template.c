/* chat_template.c - rendering a conversation, and its tokens. */
#include "model/chat_template.h"

#include <string.h>

#include "model/chat_template_parts.h"

/* A request with tools takes the template for them, where there is one. */
static const jinja_template *choose(const chat_template *t, const json_t *fields)
{
    const json_t *tools = json_object_get(fields, "tools");
    bool has_tools = tools && !json_is_null(tools);
    return has_tools && t->with_tools ? t->with_tools : t->usual;
}

/* What is there where the fields do not say otherwise. */
static json_t *defaults_of(const chat_template *t, bool is_answered)
{
    json_t *own = json_deep_copy(t->own);
    if (!own || json_object_set_new(own, "tools", json_null()) != 0 ||
        json_object_set_new(own, "documents", json_null()) != 0 ||
        json_object_set_new(own, "add_generation_prompt", json_boolean(is_answered)) != 0 ||
        json_scope_has_failed()) {
        json_decref(own);
        return NULL;
    }
    return own;
}

static mla_status render(const chat_template *t, const json_t *fields, bool is_answered,
                         jinja_rendering *out, mla_error *err)
{
    json_t *plain = NULL;
    json_t *own = defaults_of(t, is_answered);
    mla_status status =
        own ? chat_fields_flatten(fields, &plain, err)
            : MLAI_FAIL(MLA_ERR_NO_MEMORY, "out of memory for a conversation");
    if (status == MLA_OK) {
        const jinja_inputs inputs = {.own = own, .fields = plain};
        status = jinja_template_render(choose(t, fields), &inputs, out, err);
    }
    json_decref(plain);
    json_decref(own);
    return status;
}

mla_status chat_template_render(const chat_template *t, const json_t *fields,
                                bool is_answered, jinja_rendering *out, mla_error *err)
{
    *out = (jinja_rendering){.text = {.bytes = 0}};
    MLAI_CHECK(json_is_object(fields) && json_is_array(json_object_get(fields, "messages")),
               MLA_ERR_ARGUMENT, "a conversation is an object with an array of messages");
    json_scope before = json_scope_enter(t->ledger, MLA_FOR_SERVER);
    mla_status status = render(t, fields, is_answered, out, err);
    json_scope_leave(before);
    return status;
}

/* All bytes of one mark are marked here. */
static mla_status marks_of(jinja_rendering *made, const unsigned char **out, mla_error *err)
{
    const jinja_text *text = &made->text;
    void *marks = NULL;
    *out = text->marks;
    if (text->marks || !text->is_input) {
        return MLA_OK;
    }
    MLAI_TRY(jinja_take(&made->memory, text->bytes, 1, &marks, err));
    memset(marks, 1, text->bytes);
    *out = marks;
    return MLA_OK;
}

static mla_status encode(const tokenizer *words, jinja_rendering *made,
                         const chat_options *options, token_list *out, mla_error *err)
{
    const unsigned char *marks = NULL;
    MLAI_TRY(options->allows_control ? MLA_OK : marks_of(made, &marks, err));
    MLAI_TRY(tokenizer_encode_marked(words, made->text.data, marks, made->text.bytes,
                                     TOKENIZER_PARSE_SPECIAL, out, err));
    if (out->num == 0) {
        token_list_free(out);
        return MLAI_FAIL(MLA_ERR_ARGUMENT, "the conversation has no tokens");
    }
    return MLA_OK;
}

mla_status chat_template_encode(const chat_template *t, const tokenizer *words,
                                const json_t *fields, const chat_options *options,
                                token_list *out, mla_error *err)
{
    jinja_rendering made;
    mla_status status = chat_template_render(t, fields, options->is_answered, &made, err);
    if (status == MLA_OK) {
        status = encode(words, &made, options, out, err);
    }
    jinja_rendering_free(&made);
    return status;
}
