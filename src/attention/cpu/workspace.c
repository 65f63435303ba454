/* workspace.c - offsets, checked for overflow: see workspace.h. */
#include "attention/cpu/workspace.h"

#include "base/size.h"

enum { PART_ALIGN_BYTES = 64 };

/* Puts a part of num * item bytes at *end: returns its offset and moves *end, or clears
 * *fits. */
static size_t place(size_t *end, size_t num, size_t item_bytes, bool *fits)
{
    size_t begin = *end;
    size_t bytes;
    *fits = *fits && mlai_size_mul(num, item_bytes, &bytes) &&
            mlai_size_add(begin, bytes, end) &&
            mlai_size_round_up(*end, PART_ALIGN_BYTES, end) && *end <= PTRDIFF_MAX;
    return begin;
}

mla_status mlai_cpu_layout_of(const mlai_geometry *geometry,
                              const mlai_cpu_kernels *kernels, int32_t num_threads,
                              mlai_cpu_layout *out, mla_error *err)
{
    const mla_caps *caps = &geometry->caps;
    mlai_cpu_layout at = {.bytes = 0};
    bool fits = true;
    size_t latent_bytes = (size_t)caps->latent_dim * sizeof(float);
    size_t rows = (size_t)mlai_schedule_group_rows(caps);
    size_t queries = rows * (size_t)caps->num_heads;
    size_t num_slots = (size_t)mlai_schedule_num_slots(caps, num_threads);
    size_t scratch_bytes =
        kernels->attend_scratch_bytes((int32_t)queries, caps->latent_dim, caps->rope_dim);

    (void)place(&at.slot_bytes, queries, latent_bytes, &fits);
    at.slot_lse = place(&at.slot_bytes, queries, sizeof(float), &fits);

    at.out = place(&at.worker_bytes, queries, latent_bytes, &fits);
    at.lse = place(&at.worker_bytes, queries, sizeof(float), &fits);
    at.part_out = place(&at.worker_bytes, queries, latent_bytes, &fits);
    at.part_lse = place(&at.worker_bytes, queries, sizeof(float), &fits);
    at.visible = place(&at.worker_bytes, rows, sizeof(mlai_key_range), &fits);
    at.scratch = place(&at.worker_bytes, 1, scratch_bytes, &fits);

    at.groups = place(&at.bytes, (size_t)caps->max_query_rows, sizeof(mlai_group), &fits);
    at.slot_tasks = place(&at.bytes, num_slots, sizeof(mlai_slot_task), &fits);
    at.slots = place(&at.bytes, num_slots, at.slot_bytes, &fits);
    at.workers = place(&at.bytes, (size_t)num_threads, at.worker_bytes, &fits);
    MLAI_CHECK(fits, MLA_ERR_ARGUMENT,
               "the workspace of %d query rows with %d heads is more than memory can be",
               caps->max_query_rows, caps->num_heads);
    *out = at;
    return MLA_OK;
}
