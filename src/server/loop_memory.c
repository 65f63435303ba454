/* loop_memory.c - malloc, realloc and free for libevent: see loop_memory.h. */
#include "server/loop_memory.h"

#include <event2/event.h>
#include <string.h>

#include "base/size.h"

static struct {
    mla_context *context;
    uint64_t limit_bytes, now_bytes;
} loop_memory;

/* In front of each block, because free is not told the size. */
typedef struct block_label {
    _Alignas(16) size_t bytes; /* of label and block */
} block_label;

static void *take(size_t bytes)
{
    void *data = NULL;
    size_t whole = 0;
    if (!mlai_size_add(bytes, sizeof(block_label), &whole) ||
        whole > loop_memory.limit_bytes - loop_memory.now_bytes ||
        mla_memory_take(loop_memory.context, MLA_SPACE_HOST, MLA_FOR_SERVER, whole,
                        _Alignof(block_label), &data, NULL) != MLA_OK ||
        !data) {
        return NULL;
    }
    loop_memory.now_bytes += whole;
    *(block_label *)data = (block_label){.bytes = whole};
    return (block_label *)data + 1;
}

static void give(void *block)
{
    if (block) {
        block_label *label = (block_label *)block - 1;
        size_t bytes = label->bytes;
        loop_memory.now_bytes -= bytes;
        mla_memory_give(loop_memory.context, MLA_SPACE_HOST, MLA_FOR_SERVER, bytes, label);
    }
}

static void *take_again(void *block, size_t bytes)
{
    void *bigger = take(bytes);
    if (bigger && block) {
        size_t had = ((block_label *)block - 1)->bytes - sizeof(block_label);
        memcpy(bigger, block, had < bytes ? had : bytes);
        give(block);
    }
    return bigger;
}

void loop_memory_begin(mla_context *context, uint64_t limit_bytes)
{
    loop_memory.context = context;
    loop_memory.limit_bytes = limit_bytes;
    loop_memory.now_bytes = 0;
    event_set_mem_functions(take, take_again, give);
}

void loop_memory_end(void)
{
    libevent_global_shutdown();
    event_set_mem_functions(NULL, NULL, NULL);
    loop_memory.context = NULL;
}
