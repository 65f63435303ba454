/* defaults.c - what a model's directory wants of sampling: see settings.h. */
#include <float.h>
#include <stdio.h>
#include <unistd.h>

#include "base/status.h"
#include "server/api/settings.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_TOP_K = 1 << 30 };
static const double max_temperature = 2;

static mla_status read_real(const json_document *doc, const char *key, double max,
                            float *out, mla_error *err)
{
    double value = 0;
    if (key_is_set(doc->root, key)) {
        MLAI_TRY(key_real(doc, doc->root, key, 0, max, &value, err));
        *out = (float)value;
    }
    return MLA_OK;
}

static mla_status read_top_k(const json_document *doc, int32_t *out, mla_error *err)
{
    int64_t value = 0;
    if (key_is_set(doc->root, "top_k")) {
        MLAI_TRY(key_int(doc, doc->root, "top_k", -1, MAX_TOP_K, &value, err));
        *out = value > 0 ? (int32_t)value : 0;
    }
    return MLA_OK;
}

static mla_status read_all(const json_document *doc, api_defaults *out, mla_error *err)
{
    bool is_sampled = true;
    MLAI_TRY(key_bool(doc, doc->root, "do_sample", &is_sampled, err));
    if (!is_sampled) { /* then the numbers are those of something else */
        return MLA_OK;
    }
    MLAI_TRY(read_real(doc, "temperature", max_temperature, &out->temperature, err));
    MLAI_TRY(read_real(doc, "top_p", 1, &out->top_p, err));
    MLAI_TRY(read_real(doc, "min_p", 1, &out->min_p, err));
    MLAI_TRY(read_real(doc, "repetition_penalty", (double)FLT_MAX, &out->repetition_penalty,
                       err));
    return read_top_k(doc, &out->top_k, err);
}

static bool has_file(const char *dir)
{
    char path[512];
    int num = snprintf(path, sizeof path, "%s/generation_config.json", dir);
    return num < 0 || (size_t)num >= sizeof path || access(path, F_OK) == 0;
}

mla_status api_defaults_read(mlai_ledger *ledger, const char *dir, api_defaults *out,
                             mla_error *err)
{
    api_defaults found = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    json_document doc = {0};
    if (has_file(dir)) {
        MLAI_TRY(document_read(ledger, dir, "generation_config.json", MAX_FILE_BYTES, &doc,
                               err));
        mla_status status = read_all(&doc, &found, err);
        document_close(&doc);
        MLAI_TRY(status);
    }
    *out = found;
    return MLA_OK;
}
