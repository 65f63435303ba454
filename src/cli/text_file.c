/* text_file.c - a whole file into a buffer: see text_file.h. */
#include "cli/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

/* A pipe or a device may have no end. */
enum { PIECE_BYTES = 4096, MAX_FILE_BYTES = 1 << 28 };

static mla_status read_all(byte_buffer *buffer, int file, const char *name, mla_error *err)
{
    size_t before = buffer->num;
    for (;;) {
        MLAI_TRY(byte_buffer_reserve(buffer, PIECE_BYTES, err));
        ssize_t got =
            read(file, buffer->data + buffer->num, buffer->capacity - buffer->num);
        if (got == 0) {
            return MLA_OK;
        }
        if (got < 0 && errno != EINTR) {
            return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                                   "%s cannot be read", name);
        }
        buffer->num += got > 0 ? (size_t)got : 0;
        MLAI_CHECK(buffer->num - before <= MAX_FILE_BYTES, MLA_ERR_ARGUMENT,
                   "%s has more than the %d bytes that are read of a text", name,
                   MAX_FILE_BYTES);
    }
}

mla_status text_file_read(const char *path, byte_buffer *buffer, mla_error *err)
{
    if (!strcmp(path, "-")) {
        return read_all(buffer, STDIN_FILENO, "standard input", err);
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                               "%s cannot be opened", path);
    }
    mla_status status = read_all(buffer, file, path, err);
    (void)close(file);
    return status;
}
