/* file.h - the files of a directory, opened by name so that no path is ever built. */
#ifndef MLA_MODEL_FILE_H
#define MLA_MODEL_FILE_H

#include "base/ledger.h"

/* Opens the regular file `name` of the directory `dir` for reading. fd: owned, close().
 * A missing file is MLA_ERR_ARGUMENT with err->native_code ENOENT. */
mla_status file_open(const char *dir, const char *name, int *fd, size_t *bytes,
                     mla_error *err);

/* Whether the directory has this name, be it a link to nowhere or a file that may not be
 * read: what is there is not passed over in silence. */
bool file_is_there(const char *dir, const char *name);

typedef struct file_text {
    mlai_ledger *ledger;
    char *text; /* not NUL-terminated; NULL where the file is empty */
    size_t bytes;
} file_text;

/* Reads it whole, MLA_ERR_UNSUPPORTED above max_bytes. out: owned, file_text_free.
 * Memory is class context. */
mla_status file_read(mlai_ledger *ledger, const char *dir, const char *name,
                     size_t max_bytes, file_text *out, mla_error *err);
void file_text_free(file_text *text);

#endif
