/* prefill.c - the tokens of a request go into the cache, cell by cell of the grid of absolute
 * positions. */
#include "engine/state.h"

int32_t engine_tokens_in_cell(int32_t first, int32_t num)
{
    int32_t room = MODEL_CHUNK_TOKENS - first % MODEL_CHUNK_TOKENS;
    return num - first < room ? num - first : room;
}

mla_status engine_prefill(engine *self, int32_t slot, const int32_t *tokens, int32_t num,
                          float *last_logits, mla_error *err)
{
    int32_t first = 0;
    while (first < num) {
        int32_t here = engine_tokens_in_cell(first, num);
        model_chunk chunk = {
            .tokens = tokens + first,
            .num_tokens = here,
            .first_position = first,
            .block_table = engine_table(self, slot),
        };
        if (first + here == num) {
            chunk.logits = last_logits;
        }
        MLAI_TRY(model_prefill(self->model, &chunk, err));
        first += here;
    }
    return MLA_OK;
}
