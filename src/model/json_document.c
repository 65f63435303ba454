/* json_document.c - a file becomes a JSON object, or an error with line and column. */
#include <string.h>

#include "model/file.h"
#include "model/json.h"

static mla_status refuse(const char *name, const json_error_t *error, bool is_memory,
                         mla_error *err)
{
    if (is_memory) {
        return MLAI_FAIL(MLA_ERR_NO_MEMORY, "out of memory reading %s", name);
    }
    return MLAI_FAIL(MLA_ERR_CORRUPT, "%s, line %d column %d: %s", name, error->line,
                     error->column, error->text);
}

mla_status document_parse(mlai_ledger *ledger, const char *name, const char *text,
                          size_t bytes, json_document *out, mla_error *err)
{
    json_error_t error;
    memset(&error, 0, sizeof error);
    json_scope before = json_scope_enter(ledger, MLA_FOR_CONTEXT);
    json_t *root =
        json_scope_parse(text ? text : "", bytes, JSON_REJECT_DUPLICATES, &error);
    bool is_memory = json_scope_has_failed();
    json_scope_leave(before);
    if (!root || is_memory) {
        json_decref(root);
        return refuse(name, &error, is_memory, err);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return MLAI_FAIL(MLA_ERR_CORRUPT, "%s holds an array and should hold an object",
                         name);
    }
    *out = (json_document){.name = name, .root = root};
    return MLA_OK;
}

mla_status document_read(mlai_ledger *ledger, const char *dir, const char *name,
                         size_t max_bytes, json_document *out, mla_error *err)
{
    file_text file = {0};
    MLAI_TRY(file_read(ledger, dir, name, max_bytes, &file, err));
    mla_status status = document_parse(ledger, name, file.text, file.bytes, out, err);
    file_text_free(&file);
    return status;
}

void document_close(json_document *doc)
{
    json_decref(doc->root);
    doc->root = NULL;
}
