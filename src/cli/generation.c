/* generation.c - answers from their prompts to their last token: see generation.h. */
#include "cli/generation.h"

#include <signal.h>
#include <string.h>

#include "base/status.h"
#include "cli/generation_output.h"

enum { ALIGN_BYTES = 64 };

static volatile sig_atomic_t is_interrupted;

static void note_interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

bool generation_is_interrupted(void)
{
    return is_interrupted != 0;
}

/* The first SIGINT ends the answers, a second one the program. */
static void catch_interrupt(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_interrupt;
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigaction(SIGINT, &action, NULL);
}

static mla_status take(mla_context *context, size_t bytes, void **out, mla_error *err)
{
    return mla_memory_take(context, MLA_SPACE_HOST, MLA_FOR_SERVER, bytes, ALIGN_BYTES, out,
                           err);
}

static void give(mla_context *context, size_t bytes, void *data)
{
    mla_memory_give(context, MLA_SPACE_HOST, MLA_FOR_SERVER, bytes, data);
}

mla_status generation_begin(generation_batch *batch, const prompt_source *sources,
                            int32_t num, mla_error *err)
{
    mla_context *context = batch->loaded->context;
    size_t bytes = (size_t)num * sizeof *batch->items;
    void *items = NULL;
    MLAI_TRY(take(context, bytes, &items, err));
    memset(items, 0, bytes);
    batch->items = items;
    batch->num = num;
    for (int32_t i = 0; i < num; i++) {
        generation *item = &batch->items[i];
        item->text.bytes.context = context;
        mla_status status = prompt_encode(context, batch->loaded->tokenizer, &sources[i],
                                          &item->prompt, err);
        if (status != MLA_OK && num > 1) {
            mlai_error_prefix(err, "prompt %d of %d", (int)i + 1, (int)num);
        }
        MLAI_TRY(status);
    }
    return MLA_OK;
}

mla_status generation_size(generation_batch *batch, int64_t max_tokens,
                           int64_t *context_tokens, mla_error *err)
{
    int64_t holds = model_config_of(batch->loaded->model)->max_positions;
    int64_t longest = 0;
    for (int32_t i = 0; i < batch->num; i++) {
        generation *item = &batch->items[i];
        int64_t num_prompt = (int64_t)item->prompt.num;
        int64_t room = 0;
        void *ids = NULL;
        MLAI_TRY(prompt_room(num_prompt, max_tokens, holds, &room, err));
        MLAI_TRY(take(batch->loaded->context, (size_t)room * sizeof *item->ids, &ids, err));
        item->ids = ids;
        item->max_tokens = room;
        longest = num_prompt + room > longest ? num_prompt + room : longest;
    }
    *context_tokens = longest;
    return MLA_OK;
}

void generation_end(generation_batch *batch)
{
    mla_context *context = batch->loaded->context;
    for (int32_t i = 0; i < batch->num; i++) {
        generation *item = &batch->items[i];
        token_list_free(&item->prompt);
        byte_buffer_free(&item->text.bytes);
        give(context, (size_t)item->max_tokens * sizeof *item->ids, item->ids);
    }
    if (batch->items) {
        give(context, (size_t)batch->num * sizeof *batch->items, batch->items);
    }
    batch->items = NULL;
    batch->num = 0;
}

static bool receive_token(engine_request *request, const engine_event *event)
{
    generation *item = request->user;
    generation_batch *batch = item->batch;
    if (batch->status != MLA_OK) { /* another request's: it must not be forgotten */
        return false;
    }
    if (item->num_ids < item->max_tokens) {
        item->ids[item->num_ids++] = event->token;
    }
    item->is_done = item->num_ids == item->max_tokens || event->is_end;
    batch->status =
        token_text_add(&item->text, batch->loaded->tokenizer, event->token, &batch->error);
    if (batch->status == MLA_OK && item->is_done) {
        batch->status = token_text_finish(&item->text, &batch->error);
    }
    if (batch->status == MLA_OK) {
        batch->status = generation_stream(batch, &batch->error);
    }
    return batch->status == MLA_OK && !is_interrupted;
}

static void fill_requests(generation_batch *batch, engine_request *requests)
{
    for (int32_t i = 0; i < batch->num; i++) {
        generation *item = &batch->items[i];
        item->batch = batch;
        requests[i] = (engine_request){
            .prompt = item->prompt.ids,
            .num_prompt = (int32_t)item->prompt.num,
            .max_tokens = item->max_tokens,
            .sampling = batch->sampling,
            .on_token = receive_token,
            .user = item,
        };
    }
}

/* What the interrupt cut off has its text finished here. */
static mla_status finish_items(generation_batch *batch, const engine_result *results,
                               mla_error *err)
{
    for (int32_t i = 0; i < batch->num; i++) {
        generation *item = &batch->items[i];
        item->result = results[i];
        if (!item->is_done) {
            MLAI_TRY(token_text_finish(&item->text, err));
            item->is_done = true;
        }
    }
    return generation_stream(batch, err);
}

mla_status generation_run(generation_batch *batch, mla_error *err)
{
    static engine_request requests[PROMPTS_MAX];
    static engine_result results[PROMPTS_MAX];
    fill_requests(batch, requests);
    catch_interrupt();
    MLAI_TRY(generation_stream(batch, err));
    MLAI_TRY(engine_run(batch->loaded->engine, requests, batch->num, results, err));
    if (batch->status != MLA_OK) {
        *err = batch->error;
        return batch->status;
    }
    return finish_items(batch, results, err);
}
