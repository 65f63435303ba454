/* sized.c - reading and filling structs of an older or a newer header: see sized.h. */
#include "base/sized.h"

#include <string.h>

static size_t size_of(const void *data)
{
    size_t bytes;
    memcpy(&bytes, data, sizeof bytes);
    return bytes;
}

mla_status mlai_sized_check(const char *name, const void *data, size_t required_bytes,
                            size_t known_bytes, mla_error *err)
{
    MLAI_CHECK(data, MLA_ERR_ARGUMENT, "the %s is NULL", name);
    size_t bytes = size_of(data);
    MLAI_CHECK(bytes >= required_bytes, MLA_ERR_ARGUMENT,
               "%s.struct_size is %zu, and at least %zu of its %zu bytes are required "
               "(begin with MLA_INIT)",
               name, bytes, required_bytes, known_bytes);
    MLAI_CHECK(bytes <= known_bytes + MLAI_SIZED_MAX_TAIL_BYTES, MLA_ERR_ARGUMENT,
               "%s.struct_size is %zu, and this library knows %zu bytes and no header "
               "adds more than %d (begin with MLA_INIT)",
               name, bytes, known_bytes, MLAI_SIZED_MAX_TAIL_BYTES);
    const unsigned char *byte = data;
    for (size_t i = known_bytes; i < bytes; i++) {
        MLAI_CHECK(byte[i] == 0, MLA_ERR_ARGUMENT,
                   "%s.struct_size is %zu, this library knows %zu bytes, and byte %zu of "
                   "the rest is %d, not 0",
                   name, bytes, known_bytes, i, byte[i]);
    }
    return MLA_OK;
}

mla_status mlai_sized_read(const char *name, const void *in, size_t required_bytes,
                           void *copy, size_t copy_bytes, mla_error *err)
{
    MLAI_TRY(mlai_sized_check(name, in, required_bytes, copy_bytes, err));
    size_t bytes = size_of(in);
    memset(copy, 0, copy_bytes);
    memcpy(copy, in, bytes < copy_bytes ? bytes : copy_bytes);
    memcpy(copy, &copy_bytes, sizeof copy_bytes);
    return MLA_OK;
}

void mlai_sized_fill(void *out, const void *full, size_t full_bytes)
{
    size_t bytes = size_of(out);
    size_t end = bytes < full_bytes ? bytes : full_bytes;
    if (end > sizeof bytes) {
        memcpy((unsigned char *)out + sizeof bytes,
               (const unsigned char *)full + sizeof bytes, end - sizeof bytes);
    }
}
