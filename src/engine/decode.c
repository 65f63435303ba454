/* decode.c - one step of all requests that write: each has a row for its last token and one
 * for every guess of the drafter. A guess is accepted where the token drawn before it is that
 * token; so the tokens are those that would have come without it. */
#include "base/clock.h"
#include "engine/state.h"

/* The writing slots, in order; returns their number. */
static int32_t gather(engine *self)
{
    int32_t num = 0;
    for (int32_t i = 0; i < self->limits.max_requests; i++) {
        if (slot_is_writing(&self->slots[i])) {
            self->step_slots[num++] = i;
        }
    }
    return num;
}

static void begin_draft(const engine *self, const engine_slot *slot, draft *out)
{
    int64_t left = slot->max_new - slot->num_new - 1; /* guesses beyond these are no use */
    *out = (draft){
        .place = slot_place(self, slot),
        .tokens = slot->tokens,
        .num_tokens = slot->request->num_prompt + slot->num_new,
        .sampling = &slot->request->sampling,
        .max_guesses =
            left < self->limits.draft_tokens ? (int32_t)left : self->limits.draft_tokens,
    };
    for (int32_t i = 0; i < ENGINE_MAX_DRAFT; i++) {
        out->confidence[i] = 1.0F;
    }
}

/* Guesses that the engine can use, whatever the drafter returned. */
static int32_t usable_guesses(const engine *self, const draft *of)
{
    int32_t num = 0;
    while (num < of->num_guesses && num < of->max_guesses && of->guesses[num] >= 0 &&
           of->guesses[num] < self->vocab_size &&
           of->confidence[num] >= self->options.least_confidence) {
        num++;
    }
    return num;
}

static mla_status draft_guesses(engine *self, int32_t num, mla_error *err)
{
    int32_t num_wanted = 0;
    for (int32_t i = 0; i < num; i++) {
        begin_draft(self, &self->slots[self->step_slots[i]], &self->drafts[i]);
        num_wanted += self->drafts[i].max_guesses > 0;
    }
    if (!self->drafter || num_wanted == 0) {
        return MLA_OK;
    }
    MLAI_TRY(self->drafter->propose(self->drafter, self->drafts, num, err));
    for (int32_t i = 0; i < num; i++) {
        draft *made = &self->drafts[i];
        made->num_guesses = usable_guesses(self, made);
        self->stats.num_drafts += made->num_guesses > 0;
        self->stats.draft_tokens += (uint64_t)made->num_guesses;
    }
    return MLA_OK;
}

/* Rows and their pages. */
static void lay_rows(engine *self, int32_t num)
{
    int32_t num_rows = 0;
    for (int32_t i = 0; i < num; i++) {
        engine_slot *slot = &self->slots[self->step_slots[i]];
        const draft *guessed = &self->drafts[i];
        int32_t rows = 1 + guessed->num_guesses;
        slot_grow(self, slot, slot->length + rows);
        self->step_tokens[num_rows] = guessed->tokens[guessed->num_tokens - 1];
        for (int32_t j = 1; j < rows; j++) {
            self->step_tokens[num_rows + j] = guessed->guesses[j - 1];
        }
        self->step_positions[i] = slot->length;
        self->step_tables[i] = slot->table;
        self->step_rows_of[i] = rows;
        num_rows += rows;
    }
    self->stats.last_step_rows = num_rows;
}

static void note_accepted(engine *self, int32_t num)
{
    for (int32_t i = 0; i < num; i++) {
        self->stats.accepted_at[i]++;
    }
    self->stats.accepted_tokens += (uint64_t)num;
}

static void tell_drafter(const engine *self, int32_t i, int32_t first_row, int32_t num)
{
    drafter *told = self->drafter;
    if (told && told->observe) {
        draft_rows rows = {
            .place = self->step_slots[i],
            .first_position = self->step_positions[i],
            .num_rows = num,
            .num_refused = self->step_rows_of[i] - num,
            .tokens = self->step_tokens + first_row,
            .features = self->features
                            ? self->features + (size_t)first_row * self->feature_width
                            : NULL,
        };
        told->observe(told, &rows);
    }
}

/* The tokens of one sequence out of its rows of logits, as far as its guesses were right. */
static void take_tokens(engine *self, int32_t i, int32_t first_row)
{
    engine_slot *slot = &self->slots[self->step_slots[i]];
    int32_t num_rows = self->step_rows_of[i];
    int32_t num = 0;
    bool is_right = true;
    while (is_right && num < num_rows && slot->request) {
        size_t row = (size_t)first_row + (size_t)num;
        slot->length++;
        int32_t token =
            take_token(self, slot, self->logits + row * (size_t)self->vocab_size);
        num++;
        is_right = num < num_rows && token == self->step_tokens[row + 1];
    }
    note_accepted(self, num - 1);
    tell_drafter(self, i, first_row, num);
}

mla_status decode_step(engine *self, bool *has_worked, mla_error *err)
{
    int32_t num = gather(self);
    int32_t first_row = 0;
    if (num == 0) {
        return MLA_OK;
    }
    *has_worked = true;
    int64_t begin_ns = mlai_now_ns();
    MLAI_TRY(draft_guesses(self, num, err));
    lay_rows(self, num);
    model_step step = {
        .num_sequences = num,
        .num_rows = self->step_rows_of,
        .tokens = self->step_tokens,
        .positions = self->step_positions,
        .block_tables = self->step_tables,
        .logits = self->logits,
        .features = self->features,
    };
    MLAI_TRY(model_decode(self->model, &step, err));
    self->decode_ns = mlai_now_ns() - begin_ns;
    for (int32_t i = 0; i < num; i++) {
        take_tokens(self, i, first_row);
        first_row += self->step_rows_of[i];
    }
    return MLA_OK;
}
