/* timeline.h - what the class `session` held while the plans were prepared, as points in time:
 * it rises with every prime and is 0 at the end. */
#ifndef MLA_SERVER_TIMELINE_H
#define MLA_SERVER_TIMELINE_H

#include "base/ledger.h"

enum { TIMELINE_MAX_POINTS = 256 };

typedef struct timeline_point {
    int64_t at_ns; /* since the first one */
    uint64_t session_bytes;
} timeline_point;

typedef struct timeline {
    int64_t begin_ns;
    int32_t num;
    uint64_t peak_bytes; /* of all points, kept or not */
    timeline_point points[TIMELINE_MAX_POINTS];
} timeline;

/* When all points are taken, every second one is forgotten. */
void timeline_add(timeline *self, const mlai_ledger *ledger);

#endif
