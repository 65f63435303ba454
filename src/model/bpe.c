/* bpe.c - a list of symbols and a queue of the pairs that may merge. A pair that has changed
 * since it was queued is seen by its rank, which no other pair shares, and dropped. */
#include "model/bpe.h"

#include "base/size.h"

enum { QUEUE_FACTOR = 3, MIN_CAPACITY = 64 };

typedef struct bpe_symbol {
    int32_t id;            /* -1: merged into the one before */
    int32_t before, after; /* positions; -1: none */
} bpe_symbol;

typedef struct bpe_candidate {
    int32_t rank, at; /* at: the position of the left symbol */
} bpe_candidate;

typedef struct bpe_queue {
    bpe_candidate *items; /* a heap: the least first */
    size_t num;
} bpe_queue;

static bool comes_before(bpe_candidate a, bpe_candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void push(bpe_queue *queue, bpe_candidate item)
{
    size_t at = queue->num++;
    while (at > 0 && comes_before(item, queue->items[(at - 1) / 2])) {
        queue->items[at] = queue->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->items[at] = item;
}

static bpe_candidate pop(bpe_queue *queue)
{
    bpe_candidate least = queue->items[0];
    bpe_candidate last = queue->items[--queue->num];
    size_t at = 0;
    for (size_t child = 1; child < queue->num; child = 2 * at + 1) {
        if (child + 1 < queue->num &&
            comes_before(queue->items[child + 1], queue->items[child])) {
            child++;
        }
        if (!comes_before(queue->items[child], last)) {
            break;
        }
        queue->items[at] = queue->items[child];
        at = child;
    }
    queue->items[at] = last;
    return least;
}

static void free_parts(bpe_scratch *scratch)
{
    mlai_ledger_give(scratch->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER,
                     scratch->capacity * sizeof *scratch->symbols, scratch->symbols);
    mlai_ledger_give(scratch->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER,
                     QUEUE_FACTOR * scratch->capacity * sizeof *scratch->queue,
                     scratch->queue);
    scratch->symbols = NULL;
    scratch->queue = NULL;
}

void bpe_scratch_free(bpe_scratch *scratch)
{
    free_parts(scratch);
    scratch->capacity = 0;
}

static mla_status grow(bpe_scratch *scratch, size_t num_bytes, mla_error *err)
{
    if (num_bytes <= scratch->capacity) {
        return MLA_OK;
    }
    bpe_scratch_free(scratch);
    size_t capacity = num_bytes < MIN_CAPACITY ? MIN_CAPACITY : num_bytes + num_bytes / 2;
    void *memory = NULL;
    scratch->capacity = capacity;
    MLAI_TRY(mlai_ledger_take(scratch->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER,
                              capacity * sizeof *scratch->symbols, _Alignof(max_align_t),
                              "the symbols of a piece", &memory, err));
    scratch->symbols = memory;
    MLAI_TRY(mlai_ledger_take(scratch->ledger, MLA_SPACE_HOST, MLA_FOR_SERVER,
                              QUEUE_FACTOR * capacity * sizeof *scratch->queue,
                              _Alignof(max_align_t), "the merges of a piece", &memory,
                              err));
    scratch->queue = memory;
    return MLA_OK;
}

typedef struct bpe_work {
    const vocabulary *v;
    bpe_symbol *symbols;
    bpe_queue queue;
} bpe_work;

static const token_merge *merge_at(const bpe_work *work, int32_t at)
{
    const bpe_symbol *left = &work->symbols[at];
    if (left->id < 0 || left->after < 0) {
        return NULL;
    }
    return vocabulary_find_merge(work->v, left->id, work->symbols[left->after].id);
}

static void offer(bpe_work *work, int32_t at)
{
    const token_merge *merge = at >= 0 ? merge_at(work, at) : NULL;
    if (merge) {
        push(&work->queue, (bpe_candidate){merge->rank, at});
    }
}

static void start(bpe_work *work, const char *piece, int32_t num)
{
    for (int32_t i = 0; i < num; i++) {
        work->symbols[i] = (bpe_symbol){
            .id = work->v->id_of_byte[(unsigned char)piece[i]],
            .before = i - 1,
            .after = i + 1 < num ? i + 1 : -1,
        };
    }
    for (int32_t i = 0; i + 1 < num; i++) {
        offer(work, i);
    }
}

static void apply(bpe_work *work, int32_t at, const token_merge *merge)
{
    bpe_symbol *left = &work->symbols[at];
    bpe_symbol *right = &work->symbols[left->after];
    left->id = merge->result;
    left->after = right->after;
    right->id = -1;
    if (left->after >= 0) {
        work->symbols[left->after].before = at;
    }
    offer(work, left->before);
    offer(work, at);
}

static size_t collect(const bpe_work *work, int32_t *out)
{
    size_t num = 0;
    for (int32_t at = 0; at >= 0; at = work->symbols[at].after) {
        out[num++] = work->symbols[at].id;
    }
    return num;
}

mla_status bpe_encode(const vocabulary *v, bpe_scratch *scratch, const char *piece,
                      size_t num_bytes, int32_t *out, size_t *num_out, mla_error *err)
{
    MLAI_TRY(grow(scratch, num_bytes, err));
    bpe_work work = {.v = v, .symbols = scratch->symbols, .queue = {scratch->queue, 0}};
    start(&work, piece, (int32_t)num_bytes);
    while (work.queue.num > 0) {
        bpe_candidate next = pop(&work.queue);
        const token_merge *merge = merge_at(&work, next.at);
        if (merge && merge->rank == next.rank) {
            apply(&work, next.at, merge);
        }
    }
    *num_out = collect(&work, out);
    return MLA_OK;
}
