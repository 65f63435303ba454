/* memory_snapshot.c - the ledger and the process at one moment: see memory_snapshot.h. */
#include "server/memory_snapshot.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

/* The second number of statm counts resident pages. */
static uint64_t resident_bytes(void)
{
    char text[128] = {0};
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    ssize_t got = read(file, text, sizeof text - 1);
    (void)close(file);
    const char *second = got > 0 ? strchr(text, ' ') : NULL;
    uint64_t pages = 0;
    while (second && second[1] >= '0' && second[1] <= '9') {
        pages = pages * 10 + (uint64_t)(*++second - '0');
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t named_bytes(const mla_memory_report *report)
{
    uint64_t bytes = 0;
    for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
        bytes += report->cell[MLA_SPACE_HOST][purpose].now_bytes;
        bytes += report->cell[MLA_SPACE_PINNED][purpose].now_bytes;
    }
    return bytes;
}

mla_status memory_snapshot_take(const mla_context *context, const char *phase,
                                const memory_snapshot *before, memory_snapshot *out,
                                mla_error *err)
{
    *out = (memory_snapshot){.phase = phase, .report = MLA_INIT(mla_memory_report)};
    MLAI_TRY(mla_context_memory(context, &out->report, err));
    out->rss_bytes = resident_bytes();
    out->named_bytes = named_bytes(&out->report);
    out->other_bytes =
        out->rss_bytes > out->named_bytes ? out->rss_bytes - out->named_bytes : 0;
    uint64_t peak = before ? before->other_peak_bytes : 0;
    out->other_peak_bytes = peak > out->other_bytes ? peak : out->other_bytes;
    return MLA_OK;
}

uint64_t memory_snapshot_now(const memory_snapshot *snapshot, mla_purpose purpose)
{
    uint64_t bytes = purpose == MLA_FOR_OTHER ? snapshot->other_bytes : 0;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        bytes += snapshot->report.cell[space][purpose].now_bytes;
    }
    return bytes;
}

uint64_t memory_snapshot_peak(const memory_snapshot *snapshot, mla_purpose purpose)
{
    uint64_t bytes = purpose == MLA_FOR_OTHER ? snapshot->other_peak_bytes : 0;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        bytes += snapshot->report.cell[space][purpose].peak_bytes;
    }
    return bytes;
}

static json_t *spaces_of(const memory_snapshot *snapshot, mla_purpose purpose)
{
    json_t *spaces = json_object();
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        uint64_t bytes = snapshot->report.cell[space][purpose].now_bytes;
        if (purpose == MLA_FOR_OTHER && space == MLA_SPACE_HOST) {
            bytes += snapshot->other_bytes;
        }
        if (json_object_set_new(spaces, mla_space_name((mla_space)space),
                                json_integer((json_int_t)bytes)) != 0) {
            json_decref(spaces);
            return NULL;
        }
    }
    return spaces;
}

static json_t *class_of(const memory_snapshot *snapshot, mla_purpose purpose)
{
    return json_pack("{s:I, s:I, s:o}", "now",
                     (json_int_t)memory_snapshot_now(snapshot, purpose), "peak",
                     (json_int_t)memory_snapshot_peak(snapshot, purpose), "by_space",
                     spaces_of(snapshot, purpose));
}

json_t *memory_snapshot_classes(const memory_snapshot *snapshot)
{
    json_t *classes = json_object();
    for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
        if (json_object_set_new(classes, mla_purpose_name((mla_purpose)purpose),
                                class_of(snapshot, (mla_purpose)purpose)) != 0) {
            json_decref(classes);
            return NULL;
        }
    }
    return classes;
}

json_t *memory_snapshot_json(const memory_snapshot *snapshot)
{
    return json_pack("{s:s, s:I, s:o}", "phase", snapshot->phase, "rss",
                     (json_int_t)snapshot->rss_bytes, "classes",
                     memory_snapshot_classes(snapshot));
}
