/* profile_complete.c - a profile's inputs against each other. */
#include "model/profile_parts.h"

static mla_status check_device(const profile *self, mla_error *err)
{
    const profile_numbers *is = &self->is;
    MLAI_CHECK(self->backend != MLA_BACKEND_CUDA ||
                   (is->compute_major >= 8 && is->multiprocessors > 0 &&
                    is->shared_unit_bytes > 0 && is->shared_block_bytes > 0),
               MLA_ERR_CORRUPT,
               "%s: device has compute capability %lld.%lld and %lld multiprocessors; a "
               "cuda device needs 8.0, a number of them, and their shared memory",
               self->document.name, (long long)is->compute_major,
               (long long)is->compute_minor, (long long)is->multiprocessors);
    return MLA_OK;
}

static mla_status check_ranks(const profile *self, mla_error *err)
{
    const profile_numbers *is = &self->is;
    MLAI_CHECK(is->tensor % is->context == 0, MLA_ERR_CORRUPT,
               "%s: ranks.context is %lld and does not divide ranks.tensor, %lld",
               self->document.name, (long long)is->context, (long long)is->tensor);
    MLAI_CHECK(is->page_tokens % is->interleave == 0, MLA_ERR_CORRUPT,
               "%s: ranks.interleave is %lld and does not divide serving.page_tokens, %lld",
               self->document.name, (long long)is->interleave, (long long)is->page_tokens);
    MLAI_CHECK(is->expert == 1 || self->shape.config.num_experts > 0, MLA_ERR_CORRUPT,
               "%s: ranks.expert is %lld and the model has no experts", self->document.name,
               (long long)is->expert);
    return MLA_OK;
}

/* *number: where it is 0, it follows from others. */
static mla_status derive(profile *self, const char *section, const char *key,
                         int64_t *number, int64_t value, mla_error *err)
{
    if (*number != 0) {
        return MLA_OK;
    }
    *number = value;
    return profile_remark_default(self, section, key, value, err);
}

static mla_status check_serving(profile *self, mla_error *err)
{
    profile_numbers *is = &self->is;
    MLAI_TRY(derive(self, "serving", "request_tokens", &is->request_tokens,
                    is->max_context_tokens, err));
    MLAI_TRY(derive(self, "speculation", "rows_per_request", &is->rows_per_request,
                    is->draft_tokens + 1, err));
    MLAI_CHECK(is->request_tokens <= is->max_context_tokens, MLA_ERR_CORRUPT,
               "%s: serving.request_tokens is %lld, more than max_context_tokens, %lld",
               self->document.name, (long long)is->request_tokens,
               (long long)is->max_context_tokens);
    MLAI_CHECK(is->rows_per_request > is->draft_tokens, MLA_ERR_CORRUPT,
               "%s: speculation.rows_per_request is %lld, and %lld guesses are verified in "
               "at least %lld",
               self->document.name, (long long)is->rows_per_request,
               (long long)is->draft_tokens, (long long)is->draft_tokens + 1);
    return MLA_OK;
}

static mla_status check_speculation(const profile *self, mla_error *err)
{
    const profile_numbers *is = &self->is;
    bool is_none = self->speculation == SPECULATION_NONE;
    MLAI_CHECK(is_none == (is->draft_tokens == 0), MLA_ERR_CORRUPT,
               "%s: speculation.draft_tokens is %lld%s", self->document.name,
               (long long)is->draft_tokens,
               is_none ? " and speculation.kind is none" : ", with a drafter");
    MLAI_CHECK(self->speculation != SPECULATION_MTP ||
                   self->shape.config.num_mtp_layers > 0,
               MLA_ERR_CORRUPT,
               "%s: speculation.kind is mtp and the config has no num_nextn_predict_layers",
               self->document.name);
    bool has_rows = is->drafter_layers > 0;
    MLAI_CHECK(
        !has_rows ||
            mla_kv_row_bytes(self->drafter_kv_format, (int32_t)is->drafter_latent_dim,
                             (int32_t)is->drafter_rope_dim) > 0,
        MLA_ERR_CORRUPT,
        "%s: speculation has %lld layers of rows of %lld + %lld, which no format has",
        self->document.name, (long long)is->drafter_layers,
        (long long)is->drafter_latent_dim, (long long)is->drafter_rope_dim);
    return MLA_OK;
}

static mla_status check_context(const profile *self, const json_t *config, mla_error *err)
{
    int64_t longest = INT32_MAX;
    if (key_is_set(config, "max_position_embeddings")) {
        MLAI_TRY(key_int(&self->document, config, "max_position_embeddings", 1,
                         INT64_C(1) << 40, &longest, err));
    }
    MLAI_CHECK(self->is.max_context_tokens <= longest, MLA_ERR_CORRUPT,
               "%s: serving.max_context_tokens is %lld and the model's is %lld",
               self->document.name, (long long)self->is.max_context_tokens,
               (long long)longest);
    return MLA_OK;
}

mla_status profile_complete(profile *self, const json_t *config, mla_error *err)
{
    self->storage.num_ranks = (int32_t)self->is.tensor;
    self->storage.expert_ranks = (int32_t)self->is.expert;
    MLAI_TRY(check_device(self, err));
    MLAI_TRY(check_ranks(self, err));
    MLAI_TRY(check_serving(self, err));
    MLAI_TRY(check_speculation(self, err));
    return check_context(self, config, err);
}
