/* timeline.c - points in time: see timeline.h. */
#include "server/timeline.h"

#include "base/clock.h"

/* The first stays the first. */
static void thin_out(timeline *self)
{
    int32_t num = 0;
    for (int32_t i = 0; i < self->num; i += 2) {
        self->points[num++] = self->points[i];
    }
    self->num = num;
}

void timeline_add(timeline *self, const mlai_ledger *ledger)
{
    int64_t now_ns = mlai_now_ns();
    uint64_t bytes = 0;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        bytes += mlai_ledger_now(ledger, (mla_space)space, MLA_FOR_SESSION);
    }
    if (self->num == 0) {
        self->begin_ns = now_ns;
    }
    if (self->num == TIMELINE_MAX_POINTS) {
        thin_out(self);
    }
    self->peak_bytes = bytes > self->peak_bytes ? bytes : self->peak_bytes;
    self->points[self->num++] =
        (timeline_point){.at_ns = now_ns - self->begin_ns, .session_bytes = bytes};
}
