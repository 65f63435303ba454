/* memory_snapshot.h - the ledger's books at one moment, and their JSON: an object of the
 * classes by their names, each {now, peak, by_space}, in bytes.
 *
 * The class `other` is what nobody named: the process's resident memory less all that is
 * named, never below 0. Mapped files count in full as what they are for, resident or not. */
#ifndef MLA_SERVER_MEMORY_SNAPSHOT_H
#define MLA_SERVER_MEMORY_SNAPSHOT_H

#include <jansson.h>

#include "mla/mla.h"

typedef struct memory_snapshot {
    const char *phase;    /* static storage */
    uint64_t rss_bytes;   /* resident memory of the process; 0 where it is not known */
    uint64_t named_bytes; /* host and pinned, all classes of the ledger */
    uint64_t other_bytes; /* the process's, unnamed */
    uint64_t other_peak_bytes;
    mla_memory_report report;
} memory_snapshot;

/* before: an earlier snapshot, for the peak of `other`; or NULL. */
mla_status memory_snapshot_take(const mla_context *context, const char *phase,
                                const memory_snapshot *before, memory_snapshot *out,
                                mla_error *err);

/* Over all spaces, `other` completed as above. */
uint64_t memory_snapshot_now(const memory_snapshot *snapshot, mla_purpose purpose);
uint64_t memory_snapshot_peak(const memory_snapshot *snapshot, mla_purpose purpose);

/* NULL where memory is out. Owned by the caller. */
json_t *memory_snapshot_classes(const memory_snapshot *snapshot);

/* The same within {"phase", "rss", "classes"}. */
json_t *memory_snapshot_json(const memory_snapshot *snapshot);

#endif
