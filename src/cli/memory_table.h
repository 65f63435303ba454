/* memory_table.h - snapshots of the ledger as text. */
#ifndef MLA_CLI_MEMORY_TABLE_H
#define MLA_CLI_MEMORY_TABLE_H

#include "server/memory_snapshot.h"

/* The classes that hold or held something, `session` and `other` always. */
void memory_table_print(const memory_snapshot *snapshot);

/* Each class from phase to phase, in human units: [num] snapshots. */
void memory_table_summarise(const memory_snapshot *snapshots, int num);

/* What was said before preparing beside what preparing took. */
void memory_table_compare(const mla_memory_report *estimate,
                          const memory_snapshot *prepared);

#endif
