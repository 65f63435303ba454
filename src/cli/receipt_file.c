/* receipt_file.c - temporary name, fsync, rename: see receipt_file.h. */
#include "cli/receipt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

enum { MODE = 0644 };

/* The rename would put a file in the place of a device or of a link, and could not in
 * that of a folder: which would show only when all had been measured. */
static mla_status check_replaceable(const char *path, mla_error *err)
{
    struct stat there;
    MLAI_CHECK(lstat(path, &there) != 0 || S_ISREG(there.st_mode), MLA_ERR_ARGUMENT,
               "%s is there and is no regular file: a receipt does not replace it", path);
    return MLA_OK;
}

mla_status receipt_file_open(const char *path, receipt_file *out, mla_error *err)
{
    out->path = path;
    out->file = -1;
    int length = snprintf(out->fresh, sizeof out->fresh, "%s.XXXXXX", path);
    MLAI_CHECK(*path && length < RECEIPT_MAX_PATH, MLA_ERR_ARGUMENT,
               "a path of %d characters is none for a receipt", (int)strlen(path));
    MLAI_TRY(check_replaceable(path, err));
    int file = mkostemp(out->fresh, O_CLOEXEC);
    if (file < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                               "%s cannot be created", path);
    }
    (void)fchmod(file, MODE);
    out->file = file;
    return MLA_OK;
}

/* Without this a crash of the machine could lose the new name. */
static int sync_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash) {
        slash[slash == path] = '\0';
    }
    int folder = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return errno;
    }
    int failure = fsync(folder) == 0 ? 0 : errno;
    (void)close(folder);
    return failure;
}

static int write_all(int file, const char *text, size_t text_bytes)
{
    while (text_bytes > 0) {
        ssize_t written = write(file, text, text_bytes);
        if (written < 0 && errno != EINTR) {
            return errno;
        }
        size_t done = written > 0 ? (size_t)written : 0;
        text += done;
        text_bytes -= done;
    }
    return fsync(file) == 0 ? 0 : errno;
}

mla_status receipt_file_finish(receipt_file *receipt, const char *text, size_t text_bytes,
                               mla_error *err)
{
    int failure = write_all(receipt->file, text, text_bytes);
    if (close(receipt->file) != 0 && failure == 0) {
        failure = errno;
    }
    receipt->file = -1;
    if (failure == 0 && rename(receipt->fresh, receipt->path) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        (void)unlink(receipt->fresh);
    } else {
        failure = sync_folder(receipt->fresh);
    }
    return failure == 0 ? MLA_OK
                        : mlai_fail_errno(err, MLA_ERR_ARGUMENT, failure, MLAI_HERE,
                                          "%s cannot be written", receipt->path);
}

void receipt_file_close(receipt_file *receipt)
{
    if (receipt->file >= 0) {
        (void)close(receipt->file);
        (void)unlink(receipt->fresh);
        receipt->file = -1;
    }
}
