/* memory.c - the limits of one template, or of one rendering. */
#include "model/jinja/memory.h"

#include "base/size.h"

enum { STEP_BYTES = 64 };

mla_status jinja_take(jinja_memory *from, size_t num, size_t item_bytes, void **out,
                      mla_error *err)
{
    size_t bytes = 0;
    MLAI_CHECK(mlai_size_mul(num, item_bytes, &bytes) &&
                   bytes <= from->max_bytes - from->used_bytes,
               MLA_ERR_UNSUPPORTED,
               "%zu items of %zu bytes after %zu bytes are more than the limit of %zu", num,
               item_bytes, from->used_bytes, from->max_bytes);
    from->used_bytes += bytes;
    return arena_take(&from->arena, num, item_bytes, "a chat template", out, err);
}

mla_status jinja_spend(jinja_memory *from, size_t bytes, mla_error *err)
{
    from->num_steps += 1 + (int64_t)(bytes / STEP_BYTES);
    MLAI_CHECK(from->num_steps <= from->max_steps, MLA_ERR_UNSUPPORTED,
               "the template goes on after the limit of %lld steps",
               (long long)from->max_steps);
    return MLA_OK;
}

mla_status jinja_enter(jinja_memory *from, mla_error *err)
{
    MLAI_CHECK(from->depth < from->max_depth, MLA_ERR_UNSUPPORTED,
               "the template nests deeper than the limit of %d", (int)from->max_depth);
    from->depth++;
    return MLA_OK;
}
