/* step.c - one turn of the engine, and what it shows of itself. */
#include <string.h>

#include "base/clock.h"
#include "engine/state.h"

static int32_t num_running(const engine *self)
{
    int32_t num = 0;
    for (int32_t i = 0; i < self->limits.max_requests; i++) {
        num += self->slots[i].request != NULL;
    }
    return num;
}

/* Other threads see the numbers of whole steps only. */
void engine_show(engine *self)
{
    const page_pool *pages = &self->pages;
    engine_stats *stats = &self->stats;
    stats->num_running = num_running(self);
    stats->pages_used = pages->num_pages - pages->num_unused;
    stats->pages_cached = pages->num_cached;
    stats->pages_free = pages->num_unused - pages->num_cached;
    stats->pages_reserved = pages->num_reserved;
    (void)pthread_mutex_lock(&self->lock);
    self->shown = *stats;
    (void)pthread_mutex_unlock(&self->lock);
}

static mla_status work(engine *self, mla_error *err)
{
    bool has_worked = false;
    int64_t begin_ns = mlai_now_ns();
    MLAI_CHECK(!self->is_dead, MLA_ERR_STATE, "the engine has failed before");
    queue_drop_cancelled(self);
    queue_admit(self);
    engine_show(self);
    MLAI_TRY(prefill_piece(self, &has_worked, err));
    MLAI_TRY(decode_step(self, &has_worked, err));
    if (has_worked) {
        self->stats.num_steps++;
        self->stats.step_ns += (uint64_t)(mlai_now_ns() - begin_ns);
    }
    return MLA_OK;
}

mla_status engine_step(engine *self, bool *is_idle, mla_error *err)
{
    queue_receive(self);
    mla_status status = work(self, err);
    if (status != MLA_OK) {
        self->is_dead = true;
        queue_end_all(self, ENGINE_FAILED);
    }
    engine_show(self);
    *is_idle = self->stats.num_running == 0 && self->stats.num_waiting == 0;
    return status;
}

void engine_stats_take(engine *self, engine_stats *out)
{
    (void)pthread_mutex_lock(&self->lock);
    *out = self->shown;
    (void)pthread_mutex_unlock(&self->lock);
}

void engine_page_map(engine *self, unsigned char *out, int32_t num)
{
    for (int32_t i = 0; i < num && i < self->pages.num_pages; i++) {
        out[i] = atomic_load_explicit(&self->pages.owner[i], memory_order_relaxed);
    }
}
