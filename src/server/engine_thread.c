/* engine_thread.c - step after step: see engine_thread.h. */
#include "server/engine_thread.h"

#include "base/status.h"

/* A dead engine goes on: each step ends what was submitted in the meantime. */
static void note_failure(engine_thread *self, const mla_error *error)
{
    if (!atomic_load(&self->is_dead)) {
        self->error = *error;
        atomic_store(&self->is_dead, true);
    }
    loop_wake(self->loop);
}

static void *run(void *user)
{
    engine_thread *self = user;
    while (!atomic_load(&self->is_ending)) {
        mla_error error = {0};
        bool is_idle = false;
        bool has_failed = engine_step(self->engine, &is_idle, &error) != MLA_OK;
        if (has_failed) {
            note_failure(self, &error);
        }
        if (is_idle || has_failed) {
            engine_wait(self->engine);
        }
    }
    return NULL;
}

mla_status engine_thread_open(engine_thread *self, engine *stepped, loop *on,
                              mla_error *err)
{
    self->engine = stepped;
    self->loop = on;
    int number = pthread_create(&self->thread, NULL, run, self);
    if (number != 0) {
        return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, number, MLAI_HERE,
                               "the engine's thread cannot be started");
    }
    self->is_open = true;
    return MLA_OK;
}

void engine_thread_close(engine_thread *self)
{
    if (self->is_open) {
        atomic_store(&self->is_ending, true);
        engine_wake(self->engine);
        (void)pthread_join(self->thread, NULL);
        self->is_open = false;
    }
}
