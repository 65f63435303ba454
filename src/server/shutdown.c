/* shutdown.c - the first signal drains, the second ends. While it drains, the listener stays:
 * who asks for a reply is told 503, and who asks for health, too. */
#include <signal.h>

#include "base/clock.h"
#include "base/status.h"
#include "server/state.h"

#define GRACE_NS INT64_C(5000000000) /* for what was cancelled to be told so */

static void note_signal(evutil_socket_t number, short what, void *user)
{
    server *self = user;
    (void)what;
    if (server_is_draining(self)) {
        self->second_signal = (int)number;
        (void)event_base_loopbreak(self->loop.base);
    } else {
        server_drain(self);
    }
}

static mla_status watch(server *self, struct event *event, int number, mla_error *err)
{
    MLAI_CHECK(event_assign(event, self->loop.base, number, EV_SIGNAL | EV_PERSIST,
                            note_signal, self) == 0 &&
                   event_add(event, NULL) == 0,
               MLA_ERR_NO_MEMORY, "the server cannot watch signal %d", number);
    return MLA_OK;
}

mla_status server_watch_signals(server *self, mla_error *err)
{
    MLAI_TRY(watch(self, &self->terminate_event, SIGTERM, err));
    return watch(self, &self->interrupt_event, SIGINT, err);
}

void server_forget_signals(server *self)
{
    if (event_initialized(&self->terminate_event)) {
        (void)event_del(&self->terminate_event);
    }
    if (event_initialized(&self->interrupt_event)) {
        (void)event_del(&self->interrupt_event);
    }
}

bool server_is_draining(const server *self)
{
    return self->give_up_ns != 0;
}

void server_drain(server *self)
{
    if (self->http && !server_is_draining(self)) {
        self->give_up_ns = mlai_now_ns() + self->options.shutdown_timeout_ns;
        http_server_drain(self->http);
    }
}

static void cancel_all(server *self)
{
    exchange *next = NULL;
    for (exchange *at = self->exchanges; at; at = next) {
        next = at->next;
        exchange_cancel(at);
    }
    self->has_cancelled = true;
    self->give_up_ns += GRACE_NS;
}

void server_check_drained(server *self, int64_t now_ns)
{
    if (!server_is_draining(self)) {
        return;
    }
    bool is_late = now_ns >= self->give_up_ns;
    bool is_done = self->num_exchanges == 0 && !http_server_is_busy(self->http);
    if (is_done || (is_late && self->has_cancelled)) {
        (void)event_base_loopbreak(self->loop.base);
    } else if (is_late) {
        cancel_all(self);
    }
}
