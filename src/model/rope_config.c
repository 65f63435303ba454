/* rope_config.c - rope_scaling and rope_parameters. */
#include "model/rope_config.h"

#include <math.h>
#include <string.h>

#define MAX_THETA     1e12
#define MAX_FACTOR    1e4
#define MAX_ROTATIONS 1e6 /* beta_fast and beta_slow */
#define MAX_MSCALE    10.0
#define MAX_POSITIONS (INT64_C(1) << 40)

double rope_m(double factor, double mscale)
{
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

/* What would change the result and is not computed here must not pass unnoticed. */
static mla_status refuse_unknown(const json_document *doc, const json_t *object,
                                 mla_error *err)
{
    static const char *const keys[] = {"attention_factor", "apply_yarn_scaling",
                                       "llama_4_scaling_beta", "truncate"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        MLAI_CHECK(!key_is_set(object, keys[i]), MLA_ERR_UNSUPPORTED,
                   "%s: rope with %s is not supported", doc->name, keys[i]);
    }
    return MLA_OK;
}

static mla_status read_optional(const json_document *doc, const json_t *object,
                                const char *key, double max, double *out, mla_error *err)
{
    return key_is_set(object, key) ? key_real(doc, object, key, 0.0, max, out, err)
                                   : MLA_OK;
}

static mla_status read_yarn(const json_document *doc, const json_t *object,
                            rope_config *out, mla_error *err)
{
    MLAI_TRY(refuse_unknown(doc, object, err));
    MLAI_TRY(key_real(doc, object, "factor", 1.0, MAX_FACTOR, &out->factor, err));
    MLAI_TRY(key_int(doc, object, "original_max_position_embeddings", 1, MAX_POSITIONS,
                     &out->original_max_positions, err));
    const struct {
        const char *key;
        double max;
        double *out;
    } optional[] = {{"beta_fast", MAX_ROTATIONS, &out->beta_fast},
                    {"beta_slow", MAX_ROTATIONS, &out->beta_slow},
                    {"mscale", MAX_MSCALE, &out->mscale},
                    {"mscale_all_dim", MAX_MSCALE, &out->mscale_all_dim}};
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        MLAI_TRY(read_optional(doc, object, optional[i].key, optional[i].max,
                               optional[i].out, err));
    }
    MLAI_CHECK(out->beta_fast > 0 && out->beta_slow > 0, MLA_ERR_CORRUPT,
               "%s: beta_fast %g and beta_slow %g should both be above 0", doc->name,
               out->beta_fast, out->beta_slow);
    out->is_yarn = true;
    return MLA_OK;
}

static mla_status read_scaling(const json_document *doc, const json_t *object,
                               rope_config *out, mla_error *err)
{
    const char *key = key_is_set(object, "rope_type") ? "rope_type" : "type";
    const char *type;
    MLAI_TRY(key_string(doc, object, key, &type, err));
    if (strcmp(type, "default") == 0) {
        return MLA_OK;
    }
    MLAI_CHECK(strcmp(type, "yarn") == 0, MLA_ERR_UNSUPPORTED,
               "%s: rope type \"%.40s\" is not supported; supported are default and yarn",
               doc->name, type);
    return read_yarn(doc, object, out, err);
}

mla_status rope_config_read(const json_document *doc, rope_config *out, mla_error *err)
{
    rope_config rope = {.is_interleaved = out->is_interleaved,
                        .factor = 1.0,
                        .beta_fast = 32.0,
                        .beta_slow = 1.0,
                        .mscale = 1.0};
    bool is_new = key_is_set(doc->root, "rope_parameters");
    const json_t *scaling = NULL;
    if (is_new || key_is_set(doc->root, "rope_scaling")) {
        MLAI_TRY(key_object(doc, doc->root, is_new ? "rope_parameters" : "rope_scaling",
                            &scaling, err));
    }
    const json_t *holder =
        is_new && key_is_set(scaling, "rope_theta") ? scaling : doc->root;
    MLAI_TRY(key_real(doc, holder, "rope_theta", 1.0 + 1e-6, MAX_THETA, &rope.theta, err));
    if (scaling) {
        MLAI_TRY(read_scaling(doc, scaling, &rope, err));
    }
    MLAI_TRY(key_bool(doc, doc->root, "rope_interleave", &rope.is_interleaved, err));
    *out = rope;
    return MLA_OK;
}
