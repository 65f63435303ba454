/* chat_template_open.c - finding the template of a model's directory, in the order in which
 * transformers looks. */
#include <string.h>

#include "attention/context.h"
#include "model/chat_template_parts.h"
#include "model/file.h"

#define MAX_CONFIG_BYTES   ((size_t)1 << 24)
#define MAX_TEMPLATE_BYTES ((size_t)1 << 20)

static const char config_name[] = "tokenizer_config.json";
static const char template_name[] = "chat_template.jinja";
static const char legacy_name[] = "chat_template.json";

/* A special token is a text, or an object that holds it as its content. */
static json_t *token_text(const json_t *value)
{
    const json_t *text = json_is_object(value) ? json_object_get(value, "content") : value;
    return json_is_string(text) ? json_copy((json_t *)(uintptr_t)text) : NULL;
}

static mla_status read_own(chat_template *t, const json_document *config, mla_error *err)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    json_scope before = json_scope_enter(t->ledger, MLA_FOR_CONTEXT);
    t->own = json_object();
    for (size_t i = 0; config->root && i < sizeof names / sizeof *names; i++) {
        json_t *text = token_text(json_object_get(config->root, names[i]));
        if (text) {
            (void)json_object_set_new(t->own, names[i], text);
        }
    }
    bool has_failed = !t->own || json_scope_has_failed();
    json_scope_leave(before);
    return has_failed
               ? MLAI_FAIL(MLA_ERR_NO_MEMORY, "out of memory reading %s", config_name)
               : MLA_OK;
}

static mla_status compile(chat_template *t, const json_t *source, jinja_template **out,
                          mla_error *err)
{
    MLAI_CHECK(
        json_is_string(source), MLA_ERR_CORRUPT,
        "%s: chat_template is %s and should be a string, or a list of templates with "
        "names",
        config_name, json_words_of(source).text);
    MLAI_CHECK(!*out, MLA_ERR_CORRUPT, "%s: two chat templates have one name", config_name);
    return jinja_template_compile(t->ledger, json_string_value(source),
                                  json_string_length(source), out, err);
}

static mla_status compile_named(chat_template *t, const json_t *list, mla_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const json_t *name = json_object_get(entry, "name");
        const json_t *source = json_object_get(entry, "template");
        MLAI_CHECK(json_is_string(name), MLA_ERR_CORRUPT,
                   "%s: the name of a chat template is %s and should be a string",
                   config_name, json_words_of(name).text);
        if (strcmp(json_string_value(name), "default") == 0) {
            MLAI_TRY(compile(t, source, &t->usual, err));
        } else if (strcmp(json_string_value(name), "tool_use") == 0) {
            MLAI_TRY(compile(t, source, &t->with_tools, err));
        }
    }
    MLAI_CHECK(t->usual, MLA_ERR_UNSUPPORTED,
               "%s: none of its chat templates is named \"default\"", config_name);
    return MLA_OK;
}

static mla_status compile_value(chat_template *t, const json_t *value, mla_error *err)
{
    return json_is_array(value) ? compile_named(t, value, err)
                                : compile(t, value, &t->usual, err);
}

static mla_status compile_file(chat_template *t, const char *dir, mla_error *err)
{
    file_text file = {0};
    MLAI_TRY(file_read(t->ledger, dir, template_name, MAX_TEMPLATE_BYTES, &file, err));
    mla_status status = jinja_template_compile(t->ledger, file.text ? file.text : "",
                                               file.bytes, &t->usual, err);
    file_text_free(&file);
    return status;
}

static mla_status compile_legacy(chat_template *t, const char *dir, mla_error *err)
{
    json_document doc = {0};
    MLAI_CHECK(file_is_there(dir, legacy_name), MLA_ERR_UNSUPPORTED,
               "%.200s has no chat template: no %s, no chat_template in %s", dir,
               template_name, config_name);
    MLAI_TRY(document_read(t->ledger, dir, legacy_name, MAX_CONFIG_BYTES, &doc, err));
    mla_status status = compile_value(t, json_object_get(doc.root, "chat_template"), err);
    document_close(&doc);
    return status;
}

static mla_status open_parts(chat_template *t, const char *dir, const json_document *config,
                             mla_error *err)
{
    MLAI_TRY(read_own(t, config, err));
    if (file_is_there(dir, template_name)) {
        return compile_file(t, dir, err);
    }
    if (config->root && key_is_set(config->root, "chat_template")) {
        return compile_value(t, json_object_get(config->root, "chat_template"), err);
    }
    return compile_legacy(t, dir, err);
}

mla_status chat_template_open(mla_context *context, const char *dir, chat_template **out,
                              mla_error *err)
{
    mlai_ledger *ledger = mlai_context_ledger(context);
    json_document config = {0};
    void *memory = NULL;
    if (file_is_there(dir, config_name)) {
        MLAI_TRY(document_read(ledger, dir, config_name, MAX_CONFIG_BYTES, &config, err));
    }
    mla_status status = mlai_ledger_take_zeroed(
        ledger, MLA_FOR_CONTEXT, 1, sizeof(chat_template), "a chat template", &memory, err);
    chat_template *t = memory;
    if (status == MLA_OK) {
        t->ledger = ledger;
        status = open_parts(t, dir, &config, err);
    }
    document_close(&config);
    if (status != MLA_OK) {
        chat_template_close(&t);
        return status;
    }
    *out = t;
    return MLA_OK;
}

void chat_template_close(chat_template **t)
{
    if (*t) {
        json_decref((*t)->own);
        jinja_template_free(&(*t)->usual);
        jinja_template_free(&(*t)->with_tools);
        mlai_ledger_give((*t)->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                         sizeof(chat_template), *t);
    }
    *t = NULL;
}
