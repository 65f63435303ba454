/* score.c - how likely a text is: prefill with the logits of every row. */
#include <math.h>

#include "engine/state.h"

static int32_t tokens_in_cell(int32_t first, int32_t num)
{
    int32_t room = MODEL_CHUNK_TOKENS - first % MODEL_CHUNK_TOKENS;
    return num - first < room ? num - first : room;
}

mla_status engine_prefill(engine *self, int32_t slot, const int32_t *tokens, int32_t num,
                          float *last_logits, mla_error *err)
{
    int32_t first = 0;
    while (first < num) {
        int32_t here = tokens_in_cell(first, num);
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
        .block_table = engine_table(self, 0),
        .logits = self->logits,
        .is_every_row = true,
    };
    MLAI_TRY(model_prefill(self->model, &chunk, err));
    scored_rows rows = {self, tokens + first + 1};
    mlai_pool_run(self->pool, num, score_row, &rows);
    return MLA_OK;
}

mla_status engine_score(engine *self, const int32_t *tokens, int32_t num_tokens,
                        double *nll, mla_error *err)
{
    int32_t num_rows = num_tokens - 1;
    double sum = 0.0;
    MLAI_CHECK(num_tokens >= 1 && num_tokens <= self->max_context_tokens, MLA_ERR_ARGUMENT,
               "%d tokens to score; 1 to %lld", num_tokens,
               (long long)self->max_context_tokens);
    for (int32_t i = 0; i < num_tokens; i++) {
        MLAI_CHECK(tokens[i] >= 0 && tokens[i] < self->vocab_size, MLA_ERR_ARGUMENT,
                   "token %d at %d is outside the vocabulary of %d", tokens[i], i,
                   self->vocab_size);
    }
    for (int32_t first = 0; first < num_rows;) {
        int32_t here = tokens_in_cell(first, num_rows);
        MLAI_TRY(score_chunk(self, tokens, first, here, err));
        for (int32_t i = 0; i < here; i++) {
            sum += self->row_nll[i];
        }
        first += here;
    }
    *nll = sum;
    return MLA_OK;
}
