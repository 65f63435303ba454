/* byte_buffer.c - bytes that grow, in memory of the context: see byte_buffer.h. */
#include "cli/byte_buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"

enum { FIRST_BYTES = 4096, ALIGN_BYTES = 64 };

/* A pipe or a device may have no end. */
enum { MAX_FILE_BYTES = 1 << 28 };

void byte_buffer_free(byte_buffer *buffer)
{
    if (buffer->data) {
        mla_memory_give(buffer->context, MLA_SPACE_HOST, MLA_FOR_SERVER, buffer->capacity,
                        buffer->data);
    }
    *buffer = (byte_buffer){.context = buffer->context};
}

static mla_status grow_to(byte_buffer *buffer, size_t capacity, mla_error *err)
{
    void *data = NULL;
    MLAI_TRY(mla_memory_take(buffer->context, MLA_SPACE_HOST, MLA_FOR_SERVER, capacity,
                             ALIGN_BYTES, &data, err));
    byte_buffer old = *buffer;
    if (old.num > 0) {
        memcpy(data, old.data, old.num);
    }
    byte_buffer_free(buffer);
    buffer->data = data;
    buffer->num = old.num;
    buffer->capacity = capacity;
    return MLA_OK;
}

mla_status byte_buffer_reserve(byte_buffer *buffer, size_t extra, mla_error *err)
{
    size_t wanted = 0;
    size_t capacity = buffer->capacity ? buffer->capacity : FIRST_BYTES;
    MLAI_CHECK(mlai_size_add(buffer->num, extra, &wanted) && wanted <= SIZE_MAX / 2,
               MLA_ERR_NO_MEMORY, "%zu bytes after %zu are more than a buffer holds", extra,
               buffer->num);
    while (capacity < wanted) {
        capacity *= 2;
    }
    return buffer->data && capacity == buffer->capacity ? MLA_OK
                                                        : grow_to(buffer, capacity, err);
}

static mla_status read_all(byte_buffer *buffer, int file, const char *name, mla_error *err)
{
    size_t before = buffer->num;
    for (;;) {
        MLAI_TRY(byte_buffer_reserve(buffer, FIRST_BYTES, err));
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

mla_status byte_buffer_read(byte_buffer *buffer, const char *path, mla_error *err)
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
