/* ledger_json.h - what /ledger says: the snapshot that `mla memory --json` prints, of now, with
 * the pages of the pool and how the preparation went. */
#ifndef MLA_SERVER_LEDGER_JSON_H
#define MLA_SERVER_LEDGER_JSON_H

#include "base/ledger.h"
#include "engine/engine.h"
#include "server/byte_buffer.h"
#include "server/timeline.h"

enum { LEDGER_MAX_MAP_PAGES = 131072 };

typedef struct ledger_view {
    mla_context *context;
    mlai_ledger *ledger; /* of the context */
    const char *phase;
    engine *engine;
    const timeline *preparation; /* NULL: not told */
} ledger_view;

/*  {"phase", "rss", "classes": {NAME: {"now", "peak", "by_space"}},
 *   "frozen": whether only the class `server` may grow,
 *   "limits": {"requests", "context", "default_max_tokens", "has_chat"},
 *   "requests": {"running", "waiting"},
 *   "pages": {"num", "tokens", "bytes", "used", "cached", "free", "reserved",
 *             "map": [[owner, count], ...]},
 *   "preparation": {"peak", "points": [[microseconds, bytes], ...]}}
 *
 * The map tells runs of neighbours with one owner: 0 free, 1 cached, 2 and up a request; it
 * stops at LEDGER_MAX_MAP_PAGES pages. Appends to out. */
mla_status ledger_view_write(const ledger_view *self, byte_buffer *out, mla_error *err);

#endif
