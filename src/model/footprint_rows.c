/* footprint_rows.c - what requests leave behind: latent rows in pages, linear states, and the
 * rows of a drafter. */
#include "attention/placement.h"
#include "model/footprint_parts.h"

#define GIB (UINT64_C(1) << 30)

static int64_t local_tokens_of(const profile *self, int64_t tokens)
{
    const mlai_placement placement = {.num_ranks = (int32_t)self->is.context,
                                      .interleave = (int32_t)self->is.interleave};
    return mlai_placement_local_length(placement, 0, tokens); /* rank 0 has no fewer */
}

/* Of the KDA layers: a matrix for each head, and the last inputs of three convolutions. */
static byte_sum state_of_a_request(const profile *self)
{
    const kda_shape *kda = &self->shape.kda;
    byte_sum one = {0};
    byte_sum all = {0};
    size_t heads = (size_t)(kda->num_heads / self->is.tensor);
    size_t width = byte_sum_product(&one, heads, (size_t)kda->head_dim);
    if (kda->num_layers == 0) {
        return one;
    }
    byte_sum_add(&one, byte_sum_product(&one, width, (size_t)kda->head_dim),
                 (size_t)self->is.state_value_bytes);
    byte_sum_add(&one, byte_sum_product(&one, 3 * width, (size_t)kda->conv_width - 1),
                 (size_t)self->is.conv_value_bytes);
    byte_sum_add(&all, byte_sum_product(&all, one.bytes, (size_t)kda->num_layers),
                 (size_t)self->is.states_per_request);
    all.is_overflown = all.is_overflown || one.is_overflown;
    return all;
}

static byte_sum page_of(const profile *self, int64_t layers, size_t row_bytes)
{
    byte_sum page = {0};
    byte_sum_add(&page, byte_sum_product(&page, (size_t)layers, row_bytes),
                 (size_t)self->is.page_tokens);
    return page;
}

/* Pages that a fixed pool has, or else that the requests need. */
static int64_t pool_pages_of(const footprint *print, size_t page_bytes, size_t states_bytes)
{
    size_t fixed = (size_t)print->fixed_pool_bytes;
    if (fixed == 0 || page_bytes == 0) {
        return print->tokens.request_pages * print->concurrency;
    }
    return fixed > states_bytes ? (int64_t)((fixed - states_bytes) / page_bytes) : 0;
}

static void count_per_token(const profile *self, footprint_tokens *tokens)
{
    uint64_t layer_bytes = tokens->row_bytes * (uint64_t)tokens->latent_layers;
    uint64_t ranks = (uint64_t)self->is.context;
    uint64_t request = (uint64_t)self->is.request_tokens;
    tokens->ideal_bytes = (double)layer_bytes / (double)ranks;
    tokens->effective_bytes = (double)tokens->request_bytes / (double)request;
    tokens->ideal_per_gib = layer_bytes ? GIB * ranks / layer_bytes : 0;
    tokens->effective_per_gib =
        tokens->request_bytes ? GIB * request / tokens->request_bytes : 0;
}

static mla_status count_request(const profile *self, footprint *print, byte_sum state,
                                byte_sum page, mla_error *err)
{
    footprint_tokens *tokens = &print->tokens;
    byte_sum request = state;
    byte_sum needed = {0};
    tokens->local_tokens = local_tokens_of(self, self->is.request_tokens);
    tokens->request_pages = mlai_ceil_div(tokens->local_tokens, self->is.page_tokens);
    byte_sum_add(&request, (size_t)tokens->request_pages, page.bytes);
    byte_sum_add(&needed, request.bytes, (size_t)print->concurrency);
    MLAI_CHECK(!page.is_overflown && !request.is_overflown && !needed.is_overflown &&
                   needed.bytes <= INT64_MAX &&
                   tokens->request_pages <= INT32_MAX / print->concurrency,
               MLA_ERR_ARGUMENT, "%d requests of %lld tokens are more than can be counted",
               print->concurrency, (long long)self->is.request_tokens);
    tokens->request_bytes = request.bytes;
    tokens->needed_bytes = needed.bytes;
    return MLA_OK;
}

/* What a fixed pool has beside its pages and states is less than a page. */
static void count_pool(const profile *self, footprint *print, size_t page_bytes,
                       size_t states_bytes)
{
    footprint_tokens *tokens = &print->tokens;
    size_t fixed = (size_t)print->fixed_pool_bytes;
    tokens->pool_pages = pool_pages_of(print, page_bytes, states_bytes);
    tokens->pool_tokens = (uint64_t)tokens->pool_pages * (uint64_t)self->is.page_tokens *
                          (uint64_t)self->is.context;
    size_t pages = (size_t)tokens->pool_pages * page_bytes; /* the pool's or needed_bytes */
    footprint_add(print, MLA_FOR_KV, "latent pages", (byte_sum){.bytes = pages});
    footprint_add(print, MLA_FOR_KV, "linear states", (byte_sum){.bytes = states_bytes});
    if (fixed > pages + states_bytes) {
        footprint_add(print, MLA_FOR_KV, "less than a page",
                      (byte_sum){.bytes = fixed - pages - states_bytes});
    }
}

static mla_status count_kv(const profile *self, footprint *print, mla_error *err)
{
    footprint_tokens *tokens = &print->tokens;
    byte_sum state = state_of_a_request(self);
    tokens->latent_layers = model_shape_num_latent_layers(&self->shape);
    byte_sum page = page_of(self, tokens->latent_layers, tokens->row_bytes);
    MLAI_TRY(count_request(self, print, state, page, err));
    count_pool(self, print, page.bytes, state.bytes * (size_t)print->concurrency);
    count_per_token(self, tokens);
    return MLA_OK;
}

/* A drafter's rows are on every rank and in pages of their own. */
static void count_drafter_rows(const profile *self, footprint *print)
{
    const profile_numbers *is = &self->is;
    size_t row_bytes =
        mla_kv_row_bytes(self->drafter_kv_format, (int32_t)is->drafter_latent_dim,
                         (int32_t)is->drafter_rope_dim);
    int64_t window = is->drafter_window_tokens;
    int64_t tokens =
        window > 0 && window < is->request_tokens ? window : is->request_tokens;
    byte_sum rows = {0};
    byte_sum page = page_of(self, is->drafter_layers, row_bytes);
    byte_sum_add(
        &rows,
        byte_sum_product(&rows, (size_t)mlai_ceil_div(tokens, is->page_tokens), page.bytes),
        (size_t)print->concurrency);
    rows.is_overflown = rows.is_overflown || page.is_overflown;
    footprint_add(print, MLA_FOR_DRAFTER, "weights",
                  (byte_sum){.bytes = (size_t)is->drafter_weights_bytes});
    footprint_add(print, MLA_FOR_DRAFTER, "rows", rows);
}

/* The layers after the last keep rows like any other, where the token's others are. */
static void count_mtp_rows(const profile *self, footprint *print)
{
    byte_sum rows = {0};
    byte_sum page =
        page_of(self, self->shape.config.num_mtp_layers, print->tokens.row_bytes);
    byte_sum_add(&rows,
                 byte_sum_product(&rows, (size_t)print->tokens.request_pages, page.bytes),
                 (size_t)print->concurrency);
    rows.is_overflown = rows.is_overflown || page.is_overflown;
    footprint_add(print, MLA_FOR_DRAFTER, "weights",
                  (byte_sum){.bytes = print->weights.mtp_bytes});
    footprint_add(print, MLA_FOR_DRAFTER, "rows", rows);
}

mla_status footprint_count_rows(const profile *self, footprint *print, mla_error *err)
{
    const model_config *config = &self->shape.config;
    print->tokens.row_bytes =
        mla_kv_row_bytes(self->kv_format, config->kv_lora_rank, config->qk_rope_head_dim);
    MLAI_CHECK(print->tokens.row_bytes > 0, MLA_ERR_UNSUPPORTED,
               "no row of %d + %d in that KV format", config->kv_lora_rank,
               config->qk_rope_head_dim);
    MLAI_TRY(count_kv(self, print, err));
    if (self->speculation == SPECULATION_MTP) {
        count_mtp_rows(self, print);
    } else if (self->speculation == SPECULATION_MODEL) {
        count_drafter_rows(self, print);
    }
    return MLA_OK;
}
