/* loop.c - libevent's loop and its wake-up: see loop.h. */
#include "server/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/status.h"
#include "server/loop_memory.h"

enum { WARM_ROUNDS = 10 }; /* the array doubles in each, from 32 to 4096 */

static void note_wake(evutil_socket_t file, short what, void *user)
{
    loop *self = user;
    uint64_t count = 0;
    (void)what;
    (void)!read(file, &count, sizeof count);
    atomic_store(&self->is_woken, false); /* before looking: a later wake comes again */
    self->on_wake(self->user);
}

void loop_wake(loop *self)
{
    const uint64_t one = 1;
    if (!atomic_exchange(&self->is_woken, true)) {
        (void)!write(self->wake_file, &one, sizeof one);
    }
}

static struct event_base *open_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base = NULL;
    if (config &&
        event_config_require_features(config, EV_FEATURE_ET | EV_FEATURE_EARLY_CLOSE) ==
            0 &&
        event_config_set_flag(config,
                              EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV) == 0) {
        base = event_base_new_with_config(config);
    }
    if (config) {
        event_config_free(config);
    }
    return base;
}

static mla_status open_inside(loop *self, mla_error *err)
{
    self->base = open_base();
    MLAI_CHECK(self->base, MLA_ERR_NO_MEMORY,
               "the server's event loop cannot be made: no epoll, or no memory");
    self->wake_file = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->wake_file < 0) {
        return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, errno, MLAI_HERE,
                               "the server's event loop has no eventfd");
    }
    MLAI_CHECK(event_assign(&self->wake_event, self->base, self->wake_file,
                            EV_READ | EV_PERSIST, note_wake, self) == 0 &&
                   event_add(&self->wake_event, NULL) == 0,
               MLA_ERR_NO_MEMORY, "the server's event loop cannot watch its eventfd");
    return MLA_OK;
}

/* What it would say on standard error becomes a status of ours. */
static void say_nothing(int severity, const char *text)
{
    (void)severity;
    (void)text;
}

mla_status loop_open(loop *self, mla_context *context, uint64_t limit_bytes,
                     void (*on_wake)(void *user), void *user, mla_error *err)
{
    *self = (loop){.context = context, .wake_file = -1, .on_wake = on_wake, .user = user};
    event_set_log_callback(say_nothing);
    loop_memory_begin(context, limit_bytes);
    mla_status status = open_inside(self, err);
    if (status != MLA_OK) {
        loop_close(self);
    }
    return status;
}

void loop_close(loop *self)
{
    if (!self->on_wake) {
        return;
    }
    if (event_initialized(&self->wake_event)) {
        (void)event_del(&self->wake_event);
    }
    if (self->base) {
        event_base_free(self->base);
    }
    if (self->wake_file >= 0) {
        (void)close(self->wake_file);
    }
    loop_memory_end();
    *self = (loop){0};
}

static void ignore(evutil_socket_t file, short what, void *user)
{
    (void)file;
    (void)what;
    (void)user;
}

/* Watches copies of one ready file, all at once. */
static void warm(loop *self, int ready, struct event *events, int32_t num)
{
    int32_t made = 0;
    for (; made < num; made++) {
        int file = fcntl(ready, F_DUPFD_CLOEXEC, 0);
        if (file < 0) {
            break;
        }
        if (event_assign(&events[made], self->base, file, EV_READ | EV_PERSIST, ignore,
                         NULL) != 0 ||
            event_add(&events[made], NULL) != 0) {
            (void)close(file);
            break;
        }
    }
    for (int round = 0; made > 0 && round < WARM_ROUNDS; round++) {
        (void)event_base_loop(self->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
    }
    for (int32_t i = 0; i < made; i++) {
        (void)event_del(&events[i]);
        (void)close(event_get_fd(&events[i]));
    }
}

void loop_warm(loop *self, int32_t num_files)
{
    const uint64_t one = 1;
    size_t bytes = (size_t)num_files * sizeof(struct event);
    void *events = NULL;
    int ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ready < 0) {
        return;
    }
    if (write(ready, &one, sizeof one) == (ssize_t)sizeof one &&
        mla_memory_take(self->context, MLA_SPACE_HOST, MLA_FOR_SERVER, bytes,
                        _Alignof(struct event), &events, NULL) == MLA_OK) {
        warm(self, ready, events, num_files);
        mla_memory_give(self->context, MLA_SPACE_HOST, MLA_FOR_SERVER, bytes, events);
    }
    (void)close(ready);
}
