/* engine_thread.h - the thread that steps the engine, and waits where there is nothing to do. */
#ifndef MLA_SERVER_ENGINE_THREAD_H
#define MLA_SERVER_ENGINE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "server/loop.h"

typedef struct engine_thread {
    pthread_t thread;
    engine *engine;
    loop *loop;          /* woken when the engine has failed */
    atomic_bool is_dead; /* then error is written, once */
    atomic_bool is_ending;
    bool is_open;
    mla_error error;
} engine_thread;

mla_status engine_thread_open(engine_thread *self, engine *stepped, loop *on,
                              mla_error *err);
/* After the step that runs. {0} is allowed. */
void engine_thread_close(engine_thread *self);

#endif
