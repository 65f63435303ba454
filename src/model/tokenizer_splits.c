/* tokenizer_splits.c - "pre_tokenizer" of tokenizer.json: a chain of patterns that cut the
 * text into pieces, each applied to the pieces that the one before left. */
#include <string.h>

#include "model/tokenizer_parts.h"

/* What ByteLevel with use_regex splits by. */
static const char byte_level_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static mla_status add_split(tokenizer *t, const json_document *doc, const char *pattern,
                            mla_error *err)
{
    MLAI_CHECK(t->num_splits < TOKENIZER_MAX_SPLITS, MLA_ERR_UNSUPPORTED,
               "%s: pre_tokenizer has more than %d patterns", doc->name,
               TOKENIZER_MAX_SPLITS);
    mla_status status =
        regex_compile(&t->memory, pattern, strlen(pattern), &t->splits[t->num_splits], err);
    if (status != MLA_OK) {
        mlai_error_prefix(err, "%s: pre_tokenizer", doc->name);
        return status;
    }
    t->num_splits++;
    return MLA_OK;
}

static mla_status read_split(tokenizer *t, const json_document *doc, const json_t *object,
                             mla_error *err)
{
    const char *behavior;
    const char *text;
    const json_t *pattern;
    bool is_inverted = false;
    MLAI_TRY(key_string(doc, object, "behavior", &behavior, err));
    MLAI_TRY(key_bool(doc, object, "invert", &is_inverted, err));
    MLAI_CHECK(
        strcmp(behavior, "Isolated") == 0 && !is_inverted, MLA_ERR_UNSUPPORTED,
        "%s: a Split with behavior \"%.40s\"%s is not supported; supported: Isolated",
        doc->name, behavior, is_inverted ? " and invert" : "");
    MLAI_TRY(key_object(doc, object, "pattern", &pattern, err));
    MLAI_CHECK(key_is_set(pattern, "Regex"), MLA_ERR_UNSUPPORTED,
               "%s: a Split without a Regex pattern is not supported", doc->name);
    MLAI_TRY(key_string(doc, pattern, "Regex", &text, err));
    return add_split(t, doc, text, err);
}

static mla_status read_digits(tokenizer *t, const json_document *doc, const json_t *object,
                              mla_error *err)
{
    bool is_individual = false;
    MLAI_TRY(key_bool(doc, object, "individual_digits", &is_individual, err));
    return add_split(t, doc, is_individual ? "\\p{N}" : "\\p{N}+", err);
}

static mla_status read_byte_level(tokenizer *t, const json_document *doc,
                                  const json_t *object, mla_error *err)
{
    bool adds_space = true; /* the defaults of the format */
    bool has_pattern = true;
    MLAI_TRY(key_bool(doc, object, "add_prefix_space", &adds_space, err));
    MLAI_TRY(key_bool(doc, object, "use_regex", &has_pattern, err));
    MLAI_CHECK(!adds_space, MLA_ERR_UNSUPPORTED,
               "%s: ByteLevel with add_prefix_space is not supported", doc->name);
    return has_pattern ? add_split(t, doc, byte_level_pattern, err) : MLA_OK;
}

typedef struct splitter {
    const char *type;
    mla_status (*read)(tokenizer *t, const json_document *doc, const json_t *object,
                       mla_error *err);
} splitter;

static const splitter splitters[] = {
    {"Split", read_split}, {"Digits", read_digits}, {"ByteLevel", read_byte_level}};

static mla_status read_one(tokenizer *t, const json_document *doc, const json_t *object,
                           const char **type, mla_error *err)
{
    MLAI_TRY(key_string(doc, object, "type", type, err));
    for (size_t i = 0; i < sizeof splitters / sizeof splitters[0]; i++) {
        if (strcmp(splitters[i].type, *type) == 0) {
            return splitters[i].read(t, doc, object, err);
        }
    }
    return MLAI_FAIL(MLA_ERR_UNSUPPORTED,
                     "%s: pre_tokenizer type \"%.40s\" is not supported; supported: "
                     "Sequence, Split, Digits, ByteLevel",
                     doc->name, *type);
}

mla_status tokenizer_read_splits(tokenizer *t, const json_document *doc, mla_error *err)
{
    const json_t *object;
    const json_t *list = NULL;
    const char *type = "";
    MLAI_TRY(key_object(doc, doc->root, "pre_tokenizer", &object, err));
    MLAI_TRY(key_string(doc, object, "type", &type, err));
    if (strcmp(type, "Sequence") == 0) {
        MLAI_TRY(key_array(doc, object, "pretokenizers", &list, err));
    }
    size_t num = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < num; i++) {
        MLAI_TRY(read_one(t, doc, list ? json_array_get(list, i) : object, &type, err));
    }
    /* Bytes become their stand-ins at the end, and only there. */
    MLAI_CHECK(strcmp(type, "ByteLevel") == 0, MLA_ERR_UNSUPPORTED,
               "%s: pre_tokenizer ends with \"%.40s\" and should end with ByteLevel",
               doc->name, type);
    return MLA_OK;
}
