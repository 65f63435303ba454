/* mapped.h - files mapped into memory, read-only. Their bytes are booked as weights, host,
 * in full: the ledger says what may become resident, not what happens to be. */
#ifndef MLA_MODEL_MAPPED_H
#define MLA_MODEL_MAPPED_H

#include "base/ledger.h"

typedef struct mapped_file {
    void *data; /* page-aligned, read-only */
    size_t bytes;
} mapped_file;

/* out: owned, one of a mapped_files. An empty file is MLA_ERR_CORRUPT. */
mla_status mapped_file_open(mlai_ledger *ledger, const char *dir, const char *name,
                            mapped_file *out, mla_error *err);

typedef struct mapped_files {
    mlai_ledger *ledger;
    mapped_file *files; /* [num]; data NULL: not mapped yet */
    size_t num;
} mapped_files;

/* Unmaps, strikes the bytes out and gives the array back. All 0 is allowed. */
void mapped_files_close(mapped_files *files);

#endif
