/* memory.c - blocks that are given back together: see memory.h. */
#include "server/api/memory.h"

#include <string.h>

#include "base/size.h"

enum { ALIGN_BYTES = 64 };

typedef struct api_block {
    _Alignas(ALIGN_BYTES) struct api_block *before;
    size_t bytes; /* with this */
} api_block;

mla_status api_memory_take(api_memory *memory, size_t num, size_t item_bytes,
                           const char *what, void **out, mla_error *err)
{
    size_t bytes = 0;
    void *data = NULL;
    MLAI_CHECK(mlai_size_mul(num, item_bytes, &bytes) &&
                   mlai_size_add(bytes, sizeof(api_block), &bytes),
               MLA_ERR_NO_MEMORY, "%s: %zu items of %zu bytes are more than memory can be",
               what, num, item_bytes);
    MLAI_TRY(mlai_ledger_take(memory->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER, bytes,
                              ALIGN_BYTES, what, &data, err));
    api_block *block = data;
    *block = (api_block){.before = memory->last, .bytes = bytes};
    memory->last = block;
    *out = block + 1;
    return MLA_OK;
}

mla_status api_memory_copy(api_memory *memory, const char *text, size_t bytes,
                           const char **out, mla_error *err)
{
    void *copy = NULL;
    MLAI_TRY(api_memory_take(memory, bytes + 1, 1, "a text of a request", &copy, err));
    char *to = copy;
    if (to && bytes > 0) { /* to: for compilers that cannot see what MLA_OK promises */
        memcpy(to, text, bytes);
    }
    if (to) {
        to[bytes] = 0;
    }
    *out = to;
    return MLA_OK;
}

void api_memory_free(api_memory *memory)
{
    while (memory->last) {
        api_block *block = memory->last;
        memory->last = block->before;
        mlai_ledger_give(memory->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER, block->bytes,
                         block);
    }
}
