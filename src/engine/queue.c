/* queue.c - who waits, and who comes next. The line is in the order of arrival, with a
 * head start of PLACES_A_STEP for each step of priority: a bounded one, so that nobody waits for
 * ever. A request that fits may pass one that does not, but no request is passed more than
 * MAX_OVERTAKEN times; from then on all wait for it. */
#include "base/clock.h"
#include "engine/state.h"

enum { PLACES_A_STEP = 64, MAX_OVERTAKEN = 16 };

void engine_submit(engine *self, engine_request *request)
{
    request->submit_ns = mlai_now_ns();
    request->next = NULL;
    (void)pthread_mutex_lock(&self->lock);
    *self->inbox_end = request;
    self->inbox_end = &request->next;
    self->has_news = true;
    (void)pthread_cond_signal(&self->news);
    (void)pthread_mutex_unlock(&self->lock);
}

void engine_cancel(engine *self, engine_request *request)
{
    atomic_store(&request->is_cancelled, true);
    engine_wake(self);
}

void engine_wake(engine *self)
{
    (void)pthread_mutex_lock(&self->lock);
    self->has_news = true;
    (void)pthread_cond_signal(&self->news);
    (void)pthread_mutex_unlock(&self->lock);
}

void engine_wait(engine *self)
{
    (void)pthread_mutex_lock(&self->lock);
    while (!self->has_news) {
        (void)pthread_cond_wait(&self->news, &self->lock);
    }
    self->has_news = false;
    (void)pthread_mutex_unlock(&self->lock);
}

static void stand_in_line(engine *self, engine_request *request)
{
    engine_request **at = &self->line;
    request->place = self->num_arrived++ + (int64_t)request->priority * PLACES_A_STEP;
    request->num_overtaken = 0;
    while (*at && (*at)->place <= request->place) {
        at = &(*at)->next;
    }
    request->next = *at;
    *at = request;
    self->stats.num_waiting++;
}

void queue_receive(engine *self)
{
    (void)pthread_mutex_lock(&self->lock);
    engine_request *next = self->inbox;
    self->inbox = NULL;
    self->inbox_end = &self->inbox;
    self->has_news = false;
    (void)pthread_mutex_unlock(&self->lock);
    while (next) {
        engine_request *request = next;
        next = request->next;
        stand_in_line(self, request);
    }
}

static engine_request *leave_line(engine *self, engine_request **at)
{
    engine_request *request = *at;
    *at = request->next;
    self->stats.num_waiting--;
    return request;
}

void queue_drop_cancelled(engine *self)
{
    for (engine_request **at = &self->line; *at;) {
        if (atomic_load(&(*at)->is_cancelled)) {
            request_end(self, leave_line(self, at), ENGINE_CANCELLED);
        } else {
            at = &(*at)->next;
        }
    }
    for (int32_t i = 0; i < self->limits.max_requests; i++) {
        engine_slot *slot = &self->slots[i];
        if (slot->request && atomic_load(&slot->request->is_cancelled)) {
            slot_end(self, slot, ENGINE_CANCELLED, -1);
        }
    }
}

void queue_end_all(engine *self, engine_finish how)
{
    while (self->line) {
        request_end(self, leave_line(self, &self->line), how);
    }
    for (int32_t i = 0; i < self->limits.max_requests; i++) {
        if (self->slots[i].request) {
            slot_end(self, &self->slots[i], how, -1);
        }
    }
}

static engine_slot *free_slot(const engine *self)
{
    for (int32_t i = 0; i < self->limits.max_requests; i++) {
        if (!self->slots[i].request) {
            return &self->slots[i];
        }
    }
    return NULL;
}

/* Those before the one that was admitted were passed by it. */
static void note_overtaking(engine_request *first, const engine_request *end)
{
    for (; first != end; first = first->next) {
        first->num_overtaken++;
    }
}

void queue_admit(engine *self)
{
    engine_slot *slot = free_slot(self);
    for (engine_request **at = &self->line; slot && *at;) {
        engine_request *request = *at;
        if (slot_begin(self, slot, request)) {
            (void)leave_line(self, at);
            note_overtaking(self->line, *at);
            slot = free_slot(self);
        } else if (request->num_overtaken >= MAX_OVERTAKEN) {
            return;
        } else {
            at = &request->next;
        }
    }
}
