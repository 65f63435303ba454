/* tile.h - the walk over keys that every level shares: which tokens of a tile a row sees,
 * which of them must be loaded, and where a stored row lies. A tile is MLAI_TILE_TOKENS
 * keys that begin at a multiple of it, so that a row's sums are formed in the same order
 * whatever the split and whoever shares the task. */
#ifndef MLA_ATTENTION_CPU_TILE_H
#define MLA_ATTENTION_CPU_TILE_H

#include "attention/cpu/kernels.h"

/* Tokens [first, last) of a tile, counted from its begin; empty where first >= last. */
typedef struct mlai_tile_span {
    int32_t first, last;
} mlai_tile_span;

static inline int64_t mlai_key_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t mlai_key_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What a row with `visible` attends in the tile at `begin`, a key inside the split. */
static inline mlai_tile_span mlai_tile_span_of(mlai_key_range visible, mlai_key_range split,
                                               int64_t begin)
{
    int64_t first = mlai_key_max(mlai_key_max(visible.begin, split.begin), begin);
    int64_t last = mlai_key_min(mlai_key_min(visible.end, split.end),
                                begin + (int64_t)MLAI_TILE_TOKENS);
    if (first >= last) {
        return (mlai_tile_span){0, 0};
    }
    return (mlai_tile_span){(int32_t)(first - begin), (int32_t)(last - begin)};
}

/* Bit t is set for each token t of the span. */
static inline uint64_t mlai_tile_mask_of(mlai_tile_span span)
{
    if (span.first >= span.last) {
        return 0;
    }
    return (~UINT64_C(0) >> (MLAI_TILE_TOKENS - (span.last - span.first))) << span.first;
}

/* Tokens of the tile at `begin` that some row of the task attends. */
static inline uint64_t mlai_tile_needed(const mlai_attend_task *task, int64_t begin)
{
    uint64_t needed = 0;
    for (int32_t row = 0; row < task->num_rows; row++) {
        needed |=
            mlai_tile_mask_of(mlai_tile_span_of(task->visible[row], task->split, begin));
    }
    return needed;
}

/* The keys that some row of the task attends lie in this range: tiles outside it are not
 * walked. The begin is a tile's. */
static inline mlai_key_range mlai_task_keys(const mlai_attend_task *task)
{
    mlai_key_range keys = {task->split.end, task->split.begin};
    for (int32_t row = 0; row < task->num_rows; row++) {
        int64_t begin = mlai_key_max(task->visible[row].begin, task->split.begin);
        int64_t end = mlai_key_min(task->visible[row].end, task->split.end);
        if (begin < end) {
            keys.begin = mlai_key_min(keys.begin, begin);
            keys.end = mlai_key_max(keys.end, end);
        }
    }
    keys.begin -= keys.begin % MLAI_TILE_TOKENS;
    return keys;
}

/* The stored row of a key, or NULL where its page is not in the pool. */
static inline const unsigned char *mlai_kv_row(const mlai_kv_view *kv, const int32_t *table,
                                               int64_t key)
{
    int64_t page = table[key / kv->page_tokens];
    if (page < 0 || page >= kv->num_pages) {
        return NULL;
    }
    return kv->pool + page * kv->page_stride_bytes +
           key % kv->page_tokens * (int64_t)kv->row_bytes;
}

static inline size_t mlai_query_bytes(mla_dtype dtype)
{
    return dtype == MLA_F32 ? 4 : dtype == MLA_BF16 ? 2 : 1;
}

#endif
