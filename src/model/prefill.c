/* prefill.c - a chunk of one sequence. Its rows are appended first; then prefill_attend.c reads
 * every row that they see back from the cache. */
#include "model/prefill.h"

#include "model/rope.h"

static mla_status check_chunk(const model *self, const model_chunk *chunk, mla_error *err)
{
    int64_t first = chunk->first_position;
    MLAI_CHECK(self->is_prepared, MLA_ERR_STATE, "the model is not prepared");
    MLAI_CHECK(
        chunk->num_tokens >= 1 && first >= 0 &&
            first <= self->limits.max_context_tokens - chunk->num_tokens,
        MLA_ERR_ARGUMENT, "a chunk of %d tokens at position %lld of a context of %lld",
        chunk->num_tokens, (long long)first, (long long)self->limits.max_context_tokens);
    int64_t last = first + chunk->num_tokens - 1;
    MLAI_CHECK(first / MODEL_CHUNK_TOKENS == last / MODEL_CHUNK_TOKENS, MLA_ERR_ARGUMENT,
               "positions %lld to %lld do not lie in one cell of %d", (long long)first,
               (long long)last, MODEL_CHUNK_TOKENS);
    MLAI_TRY(
        layer_check_pages(self, chunk->block_table, last / MODEL_PAGE_TOKENS + 1, err));
    return model_check_tokens(self, chunk->tokens, chunk->num_tokens, err);
}

static void place_rows(model *self, const model_chunk *chunk)
{
    activations *act = &self->act;
    int32_t rope_dim = self->config.qk_rope_head_dim;
    for (int32_t i = 0; i < chunk->num_tokens; i++) {
        int64_t position = chunk->first_position + i;
        int64_t page = chunk->block_table[position / MODEL_PAGE_TOKENS];
        rope_angles(act->inv_freq, rope_dim, self->rope_magnitude, position,
                    act->angles + (size_t)i * (size_t)rope_dim);
        act->slots[i] = page * MODEL_PAGE_TOKENS + position % MODEL_PAGE_TOKENS;
    }
}

mla_status model_prefill(model *self, const model_chunk *chunk, mla_error *err)
{
    MLAI_TRY(check_chunk(self, chunk, err));
    model_pass pass = {self, chunk->num_tokens};
    place_rows(self, chunk);
    layer_embed(&pass, chunk->tokens);
    layer_keep_features(&pass, -1, chunk->features);
    for (int32_t layer = 0; layer < self->config.num_layers; layer++) {
        MLAI_TRY(layer_project(&pass, layer, err));
        prefill_attend(&pass, layer, chunk);
        layer_finish(&pass, layer);
        layer_keep_features(&pass, layer, chunk->features);
    }
    if (chunk->logits) {
        int32_t first = chunk->is_every_row ? 0 : chunk->num_tokens - 1;
        layer_logits(&pass, first, chunk->num_tokens - first, chunk->logits);
    }
    return MLA_OK;
}
