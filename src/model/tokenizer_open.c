/* tokenizer_open.c - tokenizer.json and tokenizer_config.json become a tokenizer. */
#include <string.h>

#include "attention/context.h"
#include "model/file.h"
#include "model/tokenizer_parts.h"

#define MAX_TOKENIZER_BYTES ((size_t)1 << 26)
#define MAX_CONFIG_BYTES    ((size_t)1 << 24)

/* Text is not rewritten before it is split: a normalizer that does anything is refused. */
static mla_status check_normalizer(const json_document *doc, mla_error *err)
{
    const json_t *object;
    const char *type;
    if (!key_is_set(doc->root, "normalizer")) {
        return MLA_OK;
    }
    MLAI_TRY(key_object(doc, doc->root, "normalizer", &object, err));
    MLAI_TRY(key_string(doc, object, "type", &type, err));
    MLAI_CHECK(strcmp(type, "Sequence") == 0 &&
                   json_array_size(json_object_get(object, "normalizers")) == 0,
               MLA_ERR_UNSUPPORTED, "%s: normalizer \"%.40s\" is not supported", doc->name,
               type);
    return MLA_OK;
}

static mla_status check_decoder(const json_document *doc, mla_error *err)
{
    const json_t *object;
    const char *type;
    if (!key_is_set(doc->root, "decoder")) {
        return MLA_OK;
    }
    MLAI_TRY(key_object(doc, doc->root, "decoder", &object, err));
    MLAI_TRY(key_string(doc, object, "type", &type, err));
    MLAI_CHECK(strcmp(type, "ByteLevel") == 0, MLA_ERR_UNSUPPORTED,
               "%s: decoder \"%.40s\" is not supported; supported: ByteLevel", doc->name,
               type);
    return MLA_OK;
}

static mla_status read_tokenizer(tokenizer *t, const json_document *doc, mla_error *err)
{
    MLAI_TRY(check_normalizer(doc, err));
    MLAI_TRY(check_decoder(doc, err));
    MLAI_TRY(tokenizer_read_added(t, doc, err));
    MLAI_TRY(tokenizer_read_model(t, doc, err));
    return tokenizer_read_splits(t, doc, err);
}

typedef mla_status (*reader)(tokenizer *t, const json_document *doc, mla_error *err);

static mla_status read_file(tokenizer *t, const char *dir, const char *name,
                            size_t max_bytes, reader read, mla_error *err)
{
    json_document doc = {0};
    MLAI_TRY(document_read(t->ledger, dir, name, max_bytes, &doc, err));
    mla_status status = read(t, &doc, err);
    document_close(&doc);
    return status;
}

static mla_status read_files(tokenizer *t, const char *dir, mla_error *err)
{
    static const char config_name[] = "tokenizer_config.json";
    MLAI_TRY(regex_memory_open(t->ledger, MLA_FOR_CONTEXT, &t->memory, err));
    MLAI_TRY(read_file(t, dir, "tokenizer.json", MAX_TOKENIZER_BYTES, read_tokenizer, err));
    if (!file_is_there(dir, config_name)) {
        return MLA_OK;
    }
    return read_file(t, dir, config_name, MAX_CONFIG_BYTES, tokenizer_read_ends, err);
}

mla_status tokenizer_open(mla_context *context, const char *dir, tokenizer **out,
                          mla_error *err)
{
    mlai_ledger *ledger = mlai_context_ledger(context);
    void *memory = NULL;
    MLAI_TRY(mlai_ledger_take_zeroed(ledger, MLA_FOR_CONTEXT, 1, sizeof(tokenizer),
                                     "a tokenizer", &memory, err));
    tokenizer *made = memory;
    made->context = context;
    made->ledger = ledger;
    made->arena = (arena){.ledger = ledger, .purpose = MLA_FOR_CONTEXT};
    made->bos = -1;
    made->eos = -1;
    mla_status status = read_files(made, dir, err);
    if (status != MLA_OK) {
        tokenizer_close(&made);
        return status;
    }
    *out = made;
    return MLA_OK;
}

void tokenizer_close(tokenizer **t)
{
    tokenizer *old = *t;
    *t = NULL;
    if (!old) {
        return;
    }
    for (int32_t i = 0; i < old->num_splits; i++) {
        regex_free(old->splits[i]);
    }
    regex_free(old->word);
    regex_memory_close(&old->memory);
    arena_free(&old->arena);
    mlai_ledger_give(old->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, sizeof *old, old);
}
