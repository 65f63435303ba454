/* arena.c - a chain of blocks. */
#include "model/arena.h"

#include <assert.h>
#include <string.h>

#include "base/size.h"

enum { ALIGN_BYTES = 16, BLOCK_BYTES = 1 << 14 };

typedef struct arena_block {
    _Alignas(ALIGN_BYTES) struct arena_block *older;
    size_t bytes, used; /* of the whole block, this head included */
} arena_block;

static mla_status add_block(arena *to, size_t bytes, const char *what, arena_block **out,
                            mla_error *err)
{
    size_t whole;
    void *memory = NULL;
    MLAI_CHECK(mlai_size_add(bytes, sizeof(arena_block), &whole), MLA_ERR_NO_MEMORY,
               "%s: %zu bytes are more than memory can be", what, bytes);
    whole = whole < BLOCK_BYTES ? (size_t)BLOCK_BYTES : whole;
    MLAI_TRY(mlai_ledger_take(to->ledger, MLA_SPACE_HOST, to->purpose, whole, ALIGN_BYTES,
                              what, &memory, err));
    arena_block *block = memory;
    *block =
        (arena_block){.older = to->newest, .bytes = whole, .used = sizeof(arena_block)};
    to->newest = block;
    *out = block;
    return MLA_OK;
}

mla_status arena_take(arena *from, size_t num, size_t item_bytes, const char *what,
                      void **out, mla_error *err)
{
    size_t bytes;
    MLAI_CHECK(mlai_size_mul(num, item_bytes, &bytes) &&
                   mlai_size_round_up(bytes, ALIGN_BYTES, &bytes),
               MLA_ERR_NO_MEMORY, "%s: %zu items of %zu bytes are more than memory can be",
               what, num, item_bytes);
    arena_block *block = from->newest;
    if (!block || block->bytes - block->used < bytes) {
        MLAI_TRY(add_block(from, bytes, what, &block, err));
    }
    assert(block);
    *out = (char *)block + block->used;
    block->used += bytes;
    memset(*out, 0, bytes);
    return MLA_OK;
}

void arena_free(arena *from)
{
    while (from->newest) {
        arena_block *block = from->newest;
        from->newest = block->older;
        mlai_ledger_give(from->ledger, MLA_SPACE_HOST, from->purpose, block->bytes, block);
    }
}
