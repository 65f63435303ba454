/* memory_table.c - snapshots for people: see memory_table.h. */
#include "cli/memory_table.h"

#include <stdbool.h>
#include <stdio.h>

#include "cli/human_bytes.h"

static void print_row(const char *name, uint64_t now, uint64_t peak)
{
    char now_text[HUMAN_BYTES_CHARS];
    char peak_text[HUMAN_BYTES_CHARS];
    human_bytes_write(now, now_text);
    human_bytes_write(peak, peak_text);
    (void)printf("  %-12s %10s %14llu    peak %10s %14llu\n", name, now_text,
                 (unsigned long long)now, peak_text, (unsigned long long)peak);
}

static bool is_shown(const memory_snapshot *snapshot, mla_purpose purpose)
{
    return purpose == MLA_FOR_SESSION || purpose == MLA_FOR_OTHER ||
           memory_snapshot_peak(snapshot, purpose) > 0;
}

void memory_table_print(const memory_snapshot *snapshot)
{
    char named[HUMAN_BYTES_CHARS];
    char resident[HUMAN_BYTES_CHARS];
    (void)printf("%s\n", snapshot->phase);
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        mla_purpose purpose = (mla_purpose)i;
        if (is_shown(snapshot, purpose)) {
            print_row(mla_purpose_name(purpose), memory_snapshot_now(snapshot, purpose),
                      memory_snapshot_peak(snapshot, purpose));
        }
    }
    human_bytes_write(snapshot->named_bytes, named);
    human_bytes_write(snapshot->rss_bytes, resident);
    (void)printf("  %s in the books; %s of the process are resident\n\n", named, resident);
    (void)fflush(stdout);
}

void memory_table_summarise(const memory_snapshot *snapshots, int num)
{
    char text[HUMAN_BYTES_CHARS];
    (void)printf("%-12s", "in use");
    for (int i = 0; i < num; i++) {
        (void)printf(" %11s", snapshots[i].phase);
    }
    (void)printf("\n");
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        mla_purpose purpose = (mla_purpose)i;
        if (!is_shown(&snapshots[num - 1], purpose)) {
            continue;
        }
        (void)printf("%-12s", mla_purpose_name(purpose));
        for (int j = 0; j < num; j++) {
            human_bytes_write(memory_snapshot_now(&snapshots[j], purpose), text);
            (void)printf(" %11s", text);
        }
        (void)printf("\n");
    }
}

static void print_pair(const char *what, uint64_t estimated, uint64_t measured)
{
    char estimated_text[HUMAN_BYTES_CHARS];
    char measured_text[HUMAN_BYTES_CHARS];
    human_bytes_write(estimated, estimated_text);
    human_bytes_write(measured, measured_text);
    (void)printf("%-16s %10s %14llu %10s %14llu  %s\n", what, estimated_text,
                 (unsigned long long)estimated, measured_text, (unsigned long long)measured,
                 estimated == measured ? "equal" : "different");
}

void memory_table_compare(const mla_memory_report *estimate,
                          const memory_snapshot *prepared)
{
    const mla_memory_cell *said = estimate->cell[MLA_SPACE_HOST];
    (void)printf("\n%-16s %25s %25s\n", "", "estimated", "measured");
    print_pair("session, at most", said[MLA_FOR_SESSION].peak_bytes,
               memory_snapshot_peak(prepared, MLA_FOR_SESSION));
    print_pair("plan", said[MLA_FOR_PLAN].now_bytes,
               memory_snapshot_now(prepared, MLA_FOR_PLAN));
    print_pair("kv", said[MLA_FOR_KV].now_bytes, memory_snapshot_now(prepared, MLA_FOR_KV));
}
