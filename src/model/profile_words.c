/* profile_words.c - the values of a profile that are words: formats and kinds. */
#include "model/profile_parts.h"

#include <string.h>

#include "attention/row_layout.h"

typedef struct word_key {
    const char *section, *key;
    int (*find)(const char *word); /* 0: there is no such word */
    const char *fallback;          /* NULL: it must be there */
    const char *all;               /* for the error */
} word_key;

static int find_weight_format(const char *word)
{
    return (int)weight_format_of_name(word);
}

static int find_plain_format(const char *word)
{
    weight_format format = weight_format_of_name(word);
    return format == WEIGHT_BF16 || format == WEIGHT_F32 ? (int)format : 0;
}

static int find_kv_format(const char *word)
{
    return (int)mlai_kv_format_of_name(word);
}

static int find_backend(const char *word)
{
    return strcmp(word, "cuda") == 0  ? MLA_BACKEND_CUDA
           : strcmp(word, "cpu") == 0 ? MLA_BACKEND_CPU
                                      : 0;
}

static int find_speculation(const char *word)
{
    static const char *const kinds[] = {[SPECULATION_NONE] = "none",
                                        [SPECULATION_NGRAM] = "ngram",
                                        [SPECULATION_MTP] = "mtp",
                                        [SPECULATION_MODEL] = "model"};
    for (int i = SPECULATION_NONE; i <= SPECULATION_MODEL; i++) {
        if (strcmp(kinds[i], word) == 0) {
            return i;
        }
    }
    return 0;
}

#define WEIGHT_FORMATS "f32, bf16, fp8_block128, mxfp8, mxfp4, mxfp4_x4t, int4_group32"
#define KV_FORMATS     "f32, bf16, fp8, fp8_g128"

enum { BACKEND, EXPERTS, LINEARS, OTHERS, KV_FORMAT, KIND, DRAFTER_KV_FORMAT, NUM_WORDS };

static const word_key words[NUM_WORDS] = {
    [BACKEND] = {"device", "backend", find_backend, NULL, "cpu, cuda"},
    [EXPERTS] = {"weights", "experts", find_weight_format, "bf16", WEIGHT_FORMATS},
    [LINEARS] = {"weights", "linears", find_weight_format, "bf16", WEIGHT_FORMATS},
    [OTHERS] = {"weights", "others", find_plain_format, "bf16", "bf16, f32"},
    [KV_FORMAT] = {"serving", "kv_format", find_kv_format, NULL, KV_FORMATS},
    [KIND] = {"speculation", "kind", find_speculation, "none", "none, ngram, mtp, model"},
    [DRAFTER_KV_FORMAT] = {"speculation", "kv_format", find_kv_format, "bf16", KV_FORMATS},
};

bool profile_is_word(const char *section, const char *key)
{
    for (int i = 0; i < NUM_WORDS; i++) {
        if (strcmp(words[i].section, section) == 0 && strcmp(words[i].key, key) == 0) {
            return true;
        }
    }
    return strcmp(section, "device") == 0 && strcmp(key, "name") == 0;
}

static mla_status read_word(profile *self, const word_key *key, int *out, mla_error *err)
{
    const json_t *value;
    MLAI_TRY(profile_find(self, key->section, key->key, &value, err));
    MLAI_CHECK(value || key->fallback, MLA_ERR_CORRUPT, "%s: %s.%s is missing",
               self->document.name, key->section, key->key);
    const char *text = value ? json_string_value(value) : key->fallback;
    int found = text ? key->find(text) : 0;
    MLAI_CHECK(found, MLA_ERR_CORRUPT, "%s: %s.%s is %s and should be one of %s",
               self->document.name, key->section, key->key, json_words_of(value).text,
               key->all);
    *out = found;
    return MLA_OK;
}

mla_status profile_read_words(profile *self, mla_error *err)
{
    int found[NUM_WORDS] = {0};
    const json_t *name;
    for (int i = 0; i < NUM_WORDS; i++) {
        MLAI_TRY(read_word(self, &words[i], &found[i], err));
    }
    MLAI_TRY(profile_find(self, "device", "name", &name, err));
    MLAI_CHECK(json_is_string(name), MLA_ERR_CORRUPT,
               "%s: device.name is %s and should be a string", self->document.name,
               json_words_of(name).text);
    self->device_name = json_string_value(name);
    self->backend = (mla_backend)found[BACKEND];
    self->storage.experts = (weight_format)found[EXPERTS];
    self->storage.linears = (weight_format)found[LINEARS];
    self->storage.others = (weight_format)found[OTHERS];
    self->kv_format = (mla_kv_format)found[KV_FORMAT];
    self->speculation = (profile_speculation)found[KIND];
    self->drafter_kv_format = (mla_kv_format)found[DRAFTER_KV_FORMAT];
    return MLA_OK;
}
