/* loop.h - the one thread that talks to the network: libevent's loop over epoll, and how
 * another thread wakes it. */
#ifndef MLA_SERVER_LOOP_H
#define MLA_SERVER_LOOP_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mla/mla.h"

typedef struct loop {
    mla_context *context;
    struct event_base *base;
    int wake_file; /* an eventfd */
    struct event wake_event;
    atomic_bool is_woken; /* and on_wake has not begun */
    void (*on_wake)(void *user);
    void *user;
} loop;

/* on_wake: called on the loop's thread after one or more loop_wake. context: borrowed until
 * close; libevent's memory is its class server, at most limit_bytes. One a process. After a
 * failure there is nothing to close. */
mla_status loop_open(loop *self, mla_context *context, uint64_t limit_bytes,
                     void (*on_wake)(void *user), void *user, mla_error *err);
void loop_close(loop *self); /* {0} is allowed */

/* libevent keeps a slot for every file number and an array for the files that were ready at
 * once. Makes it take them now for num_files more files, so that later connections leave no
 * byte behind. Fewer, without an error, where the process may not have so many files. */
void loop_warm(loop *self, int32_t num_files);

void loop_wake(loop *self); /* any thread; never blocks */

#endif
