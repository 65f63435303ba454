/* receipt_file.h - a file that is there whole or not at all, and whose place is taken before
 * the work that fills it. */
#ifndef MLA_CLI_RECEIPT_FILE_H
#define MLA_CLI_RECEIPT_FILE_H

#include <stddef.h>

#include "mla/mla.h"

enum { RECEIPT_MAX_PATH = 4096 };

typedef struct receipt_file {
    const char *path; /* borrowed */
    char fresh[RECEIPT_MAX_PATH];
    int file; /* -1: none */
} receipt_file;

/* Makes an empty file beside `path`. MLA_ERR_ARGUMENT where that cannot be. */
mla_status receipt_file_open(const char *path, receipt_file *out, mla_error *err);

/* Fills it and gives it its name, on the disk. */
mla_status receipt_file_finish(receipt_file *receipt, const char *text, size_t text_bytes,
                               mla_error *err);

/* Takes away what was not finished. */
void receipt_file_close(receipt_file *receipt);

#endif
