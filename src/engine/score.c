/* score.c - how likely a text is: prefill with the logits of every row. */
#include <math.h>

#include "engine/state.h"

typedef struct scored_rows {
    const engine *engine;
    const int32_t *next; /* [num_rows] the token that came after each row */
} scored_rows;

static void score_row(void *arg, int64_t index, int32_t worker)
{
    const scored_rows *rows = arg;
    size_t vocab = (size_t)rows->engine->vocab_size;
    const float *logits = rows->engine->logits + (size_t)index * vocab;
    float max = logits[0];
    double sum = 0.0;
    (void)worker;
    for (size_t i = 1; i < vocab; i++) {
        max = logits[i] > max ? logits[i] : max;
    }
    for (size_t i = 0; i < vocab; i++) {
        sum += (double)expf(logits[i] - max);
    }
    rows->engine->row_nll[index] =
        log(sum) - ((double)logits[rows->next[index]] - (double)max);
}

/* Rows [first, first + num) predict tokens [first + 1, first + 1 + num). */
static mla_status score_chunk(engine *self, const int32_t *tokens, int32_t first,
                              int32_t num, mla_error *err)
{
    model_chunk chunk = {
        .tokens = tokens + first,
        .num_tokens = num,
        .first_position = first,
        .block_table = self->slots[0].table,
        .logits = self->logits,
        .is_every_row = true,
    };
    MLAI_TRY(model_prefill(self->model, &chunk, err));
    scored_rows rows = {self, tokens + first + 1};
    mlai_pool_run(self->pool, num, score_row, &rows);
    return MLA_OK;
}

static mla_status score_rows(engine *self, const int32_t *tokens, int32_t num_rows,
                             double *nll, mla_error *err)
{
    double sum = 0.0;
    for (int32_t first = 0; first < num_rows;) {
        int32_t here = engine_tokens_in_cell(first, num_rows);
        MLAI_TRY(score_chunk(self, tokens, first, here, err));
        for (int32_t i = 0; i < here; i++) {
            sum += self->row_nll[i];
        }
        first += here;
    }
    *nll = sum;
    return MLA_OK;
}

mla_status engine_score(engine *self, const int32_t *tokens, int32_t num_tokens,
                        double *nll, mla_error *err)
{
    int32_t num_pages = (int32_t)pages_needed(num_tokens, 0);
    engine_slot *slot = &self->slots[0];
    MLAI_CHECK(self->options.scores_texts, MLA_ERR_STATE,
               "the engine was not opened to score texts");
    MLAI_CHECK(num_tokens >= 1 && num_tokens <= self->limits.max_context_tokens,
               MLA_ERR_ARGUMENT, "%d tokens to score; 1 to %lld", num_tokens,
               (long long)self->limits.max_context_tokens);
    MLAI_TRY(model_check_tokens(self->model, tokens, num_tokens, err));
    MLAI_CHECK(!slot->request && pages_reserve(&self->pages, num_pages), MLA_ERR_STATE,
               "the engine is not idle");
    slot->num_reserved = num_pages;
    slot_grow(self, slot, num_tokens - 1);
    mla_status status = score_rows(self, tokens, num_tokens - 1, nll, err);
    slot_give_pages(self, slot);
    return status;
}
