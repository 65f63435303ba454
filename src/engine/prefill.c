/* prefill.c - prompts go into the cache piece by piece. Which prompt has the next piece is a
 * matter of turns: each piece costs its request that many tokens, and the least one is next.
 * Whoever comes later starts at the present level, which rises by each one's equal share of
 * what is done (weighted fair queueing's virtual time), moved by its priority. So short prompts
 * pass long ones, and long ones still get their share. */
#include "base/clock.h"
#include "engine/state.h"

enum {
    TOKENS_A_STEP = 4096, /* what a step of priority is worth */
    LEAST_PIECE = 16,
    CONTEXT_A_PIECE = 8, /* see piece_beside */
};

int32_t engine_tokens_in_cell(int64_t first, int64_t num)
{
    int64_t room = MODEL_CHUNK_TOKENS - first % MODEL_CHUNK_TOKENS;
    return (int32_t)(num - first < room ? num - first : room);
}

static int64_t turn_of(const engine_slot *slot)
{
    return slot->prefill_turn + (int64_t)slot->request->priority * TOKENS_A_STEP;
}

/* num: of those that want one. */
static engine_slot *next_slot(engine *self, int32_t *num)
{
    engine_slot *best = NULL;
    *num = 0;
    for (int32_t i = 0; i < self->limits.max_requests; i++) {
        engine_slot *slot = &self->slots[i];
        *num += slot_is_prefilling(slot);
        if (slot_is_prefilling(slot) && (!best || turn_of(slot) < turn_of(best))) {
            best = slot;
        }
    }
    return best;
}

static bool is_anyone_writing(const engine *self)
{
    for (int32_t i = 0; i < self->limits.max_requests; i++) {
        if (slot_is_writing(&self->slots[i])) {
            return true;
        }
    }
    return false;
}

/* Tokens of a piece while others write: as many as take about as long as their own step, so
 * that they wait for twice a step and not for a whole cell. Each piece computes the keys and
 * values of all that is cached before it anew; so that this stays a bounded part of the work,
 * a piece has at least a share of its position. */
static int64_t piece_beside(const engine *self, int64_t position)
{
    int64_t token_ns = self->piece_token_ns > 0 ? self->piece_token_ns : 1;
    int64_t least = position / CONTEXT_A_PIECE;
    int64_t num = self->decode_ns / token_ns / LEAST_PIECE * LEAST_PIECE;
    num = num > least ? num : least;
    return num > LEAST_PIECE ? num : LEAST_PIECE;
}

static page_key next_key(const engine *self, const engine_slot *slot)
{
    const int32_t *tokens = slot->tokens + (size_t)slot->num_keyed * MODEL_PAGE_TOKENS;
    return page_key_after(slot->key, tokens, MODEL_PAGE_TOKENS, self->secret);
}

/* Pages that another prompt left, or is just writing, from here on. The last token of a prompt
 * is always computed: its logits are wanted. */
static void share_pages(engine *self, engine_slot *slot)
{
    int64_t last = slot->request->num_prompt - 1;
    while (self->options.has_prefix_cache && slot->length % MODEL_PAGE_TOKENS == 0 &&
           slot->length + MODEL_PAGE_TOKENS <= last) {
        page_key key = next_key(self, slot);
        int32_t page = pages_find(&self->pages, key);
        if (page == NO_PAGE) {
            return;
        }
        pages_share(&self->pages, page, slot_place(self, slot));
        slot->num_reserved--;
        slot->table[slot->num_pages++] = page;
        slot->length += MODEL_PAGE_TOKENS;
        slot->num_cached += MODEL_PAGE_TOKENS;
        slot->num_keyed++;
        slot->key = key;
        self->stats.cached_tokens += MODEL_PAGE_TOKENS;
    }
}

/* Pages that are full of the prompt's tokens may serve others: what prefill wrote has the same
 * bits whoever wrote it. What decode wrote has not, and is never handed on. */
static void publish_pages(engine *self, engine_slot *slot)
{
    while (self->options.has_prefix_cache &&
           (int64_t)(slot->num_keyed + 1) * MODEL_PAGE_TOKENS <= slot->length) {
        slot->key = next_key(self, slot);
        pages_publish(&self->pages, slot->table[slot->num_keyed], slot->key);
        slot->num_keyed++;
    }
}

static void tell_drafter(const engine *self, const engine_slot *slot, int32_t num)
{
    if (self->drafter && self->drafter->observe) {
        draft_rows rows = {
            .place = slot_place(self, slot),
            .first_position = slot->length - num,
            .num_rows = num,
            .tokens = slot->tokens + slot->length - num,
            .features = self->features,
        };
        self->drafter->observe(self->drafter, &rows);
    }
}

static mla_status prefill(engine *self, engine_slot *slot, int32_t num, mla_error *err)
{
    bool is_last = slot->length + num == slot->request->num_prompt;
    model_chunk chunk = {
        .tokens = slot->tokens + slot->length,
        .num_tokens = num,
        .first_position = slot->length,
        .block_table = slot->table,
        .logits = is_last ? self->logits : NULL,
        .features = self->features,
    };
    slot_grow(self, slot, slot->length + num);
    MLAI_TRY(model_prefill(self->model, &chunk, err));
    slot->length += num;
    slot->prefill_turn += num;
    publish_pages(self, slot);
    tell_drafter(self, slot, num);
    if (is_last) {
        (void)take_token(self, slot, self->logits);
    }
    return MLA_OK;
}

mla_status prefill_piece(engine *self, bool *has_worked, mla_error *err)
{
    int32_t num_prefilling = 0;
    engine_slot *slot = next_slot(self, &num_prefilling);
    if (!slot) {
        return MLA_OK;
    }
    share_pages(self, slot);
    int32_t num = engine_tokens_in_cell(slot->length, slot->request->num_prompt);
    int64_t begin_ns = mlai_now_ns();
    if (is_anyone_writing(self) && num > piece_beside(self, slot->length)) {
        num = (int32_t)piece_beside(self, slot->length);
    }
    *has_worked = true;
    self->prefill_now += mlai_ceil_div(num, num_prefilling);
    MLAI_TRY(prefill(self, slot, num, err));
    self->piece_token_ns = (mlai_now_ns() - begin_ns) / num;
    return MLA_OK;
}
