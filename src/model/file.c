/* file.c - open, look, read; nothing else. */
#include "model/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static mla_status open_in(const char *dir, const char *name, int *fd, mla_error *err)
{
    int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                               "cannot open the directory %.120s", dir);
    }
    int file = openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int failure = errno;
    (void)close(at);
    if (file < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, failure, MLAI_HERE,
                               "cannot open %.60s in %.100s", name, dir);
    }
    *fd = file;
    return MLA_OK;
}

mla_status file_open(const char *dir, const char *name, int *fd, size_t *bytes,
                     mla_error *err)
{
    int file = -1;
    MLAI_TRY(open_in(dir, name, &file, err));
    struct stat facts;
    if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size < 0) {
        (void)close(file);
        return MLAI_FAIL(MLA_ERR_ARGUMENT, "%.60s in %.100s is not a regular file", name,
                         dir);
    }
    *fd = file;
    *bytes = (size_t)facts.st_size;
    return MLA_OK;
}

bool file_is_there(const char *dir, const char *name)
{
    struct stat facts;
    int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return false;
    }
    bool is_missing =
        fstatat(at, name, &facts, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
    (void)close(at);
    return !is_missing;
}

/* The number of bytes read; less than `bytes` where the file ends or fails early. */
static size_t read_all(int fd, char *out, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(fd, out + done, bytes - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += (size_t)got;
    }
    return done;
}

static mla_status read_open(mlai_ledger *ledger, int fd, const char *name, file_text *out,
                            mla_error *err)
{
    void *text = NULL;
    if (out->bytes == 0) {
        return MLA_OK;
    }
    MLAI_TRY(mlai_ledger_take(ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, out->bytes, 1, name,
                              &text, err));
    out->text = text;
    size_t done = read_all(fd, out->text, out->bytes);
    if (done != out->bytes) {
        mla_status status = MLAI_FAIL(MLA_ERR_CORRUPT, "%s ended after %zu of %zu bytes",
                                      name, done, out->bytes);
        file_text_free(out);
        return status;
    }
    return MLA_OK;
}

mla_status file_read(mlai_ledger *ledger, const char *dir, const char *name,
                     size_t max_bytes, file_text *out, mla_error *err)
{
    int fd = -1;
    file_text read = {.ledger = ledger};
    MLAI_TRY(file_open(dir, name, &fd, &read.bytes, err));
    mla_status status;
    if (read.bytes > max_bytes) {
        status =
            MLAI_FAIL(MLA_ERR_UNSUPPORTED, "%s has %zu bytes, and at most %zu are read",
                      name, read.bytes, max_bytes);
    } else {
        status = read_open(ledger, fd, name, &read, err);
    }
    (void)close(fd);
    if (status == MLA_OK) {
        *out = read;
    }
    return status;
}

void file_text_free(file_text *text)
{
    mlai_ledger_give(text->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT, text->bytes,
                     text->text);
    text->text = NULL;
    text->bytes = 0;
}
