/* chat_prompt.c - reading a conversation and using the model's template: see chat_prompt.h. */
#include "cli/chat_prompt.h"

#include <string.h>

#include "attention/context.h"
#include "base/status.h"
#include "cli/text_file.h"
#include "model/chat_template.h"

/* A list is the messages of an object that has nothing else. */
static json_t *as_object(json_t *read)
{
    return json_is_array(read) ? json_pack("{s:o}", "messages", read) : read;
}

static mla_status read_fields(mla_context *context, const char *path, json_t **out,
                              mla_error *err)
{
    json_error_t error;
    memset(&error, 0, sizeof error);
    byte_buffer file = {.context = context};
    MLAI_TRY(text_file_read(path, &file, err));
    json_scope before = json_scope_enter(mlai_context_ledger(context), MLA_FOR_SERVER);
    json_t *read = json_scope_parse(file.data, file.num, JSON_REJECT_DUPLICATES, &error);
    *out = read ? as_object(read) : NULL;
    bool is_memory = json_scope_has_failed();
    json_scope_leave(before);
    byte_buffer_free(&file);
    MLAI_CHECK(!is_memory, MLA_ERR_NO_MEMORY, "out of memory reading %.200s", path);
    MLAI_CHECK(*out, MLA_ERR_ARGUMENT, "%.200s, line %d column %d: %s", path, error.line,
               error.column, error.text);
    return MLA_OK;
}

typedef struct chat_use {
    mla_context *context;
    const tokenizer *words;
    const chat_source *source;
    token_list *ids; /* or NULL: then the text is wanted */
    byte_buffer *text;
} chat_use;

static mla_status copy_text(jinja_text text, byte_buffer *out, mla_error *err)
{
    MLAI_TRY(byte_buffer_reserve(out, text.bytes, err));
    if (text.bytes > 0) {
        memcpy(out->data + out->num, text.data, text.bytes);
        out->num += text.bytes;
    }
    return MLA_OK;
}

static mla_status use_template(const chat_use *use, const chat_template *t,
                               const json_t *fields, mla_error *err)
{
    const chat_options options = {.is_answered = true,
                                  .allows_control = use->source->allows_control};
    if (!use->text) {
        return chat_template_encode(t, use->words, fields, &options, use->ids, err);
    }
    jinja_rendering made;
    mla_status status = chat_template_render(t, fields, true, &made, err);
    if (status == MLA_OK) {
        status = copy_text(made.text, use->text, err);
    }
    jinja_rendering_free(&made);
    return status;
}

static mla_status use_chat(const chat_use *use, mla_error *err)
{
    json_t *fields = NULL;
    chat_template *t = NULL;
    MLAI_TRY(read_fields(use->context, use->source->path, &fields, err));
    mla_status status = chat_template_open(use->context, use->source->dir, &t, err);
    if (status == MLA_OK) {
        status = use_template(use, t, fields, err);
    }
    chat_template_close(&t);
    json_decref(fields);
    return status;
}

mla_status chat_prompt_encode(mla_context *context, const tokenizer *words,
                              const chat_source *source, token_list *out, mla_error *err)
{
    const chat_use use = {.context = context, .words = words, .source = source, .ids = out};
    return use_chat(&use, err);
}

mla_status chat_prompt_render(mla_context *context, const chat_source *source,
                              byte_buffer *out, mla_error *err)
{
    const chat_use use = {.context = context, .source = source, .text = out};
    return use_chat(&use, err);
}
