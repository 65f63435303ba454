/* byte_buffer.c - bytes that grow, in memory of the context: see byte_buffer.h. */
#include "server/byte_buffer.h"

#include <string.h>

#include "base/size.h"
#include "base/status.h"

enum { FIRST_BYTES = 4096, ALIGN_BYTES = 64 };

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
