/* buffers.c - what a binding demands of the caller's buffers. Checked here once, so that a
 * run has nothing left to check but its batch. */
#include "attention/binding.h"

typedef struct span {
    const char *name;
    const void *data;
    size_t bytes;
    mla_need need;
} span;

enum { NUM_SPANS = 10 };

static span span_of(const char *name, const void *data, size_t bytes, mla_need need)
{
    return (span){name, data, bytes, need};
}

static void list_spans(const mla_plan *plan, const mla_buffers *buffers,
                       const mla_requirements *need, span spans[NUM_SPANS])
{
    const mla_caps *caps = &plan->geometry.caps;
    mla_need scale = {sizeof(float), sizeof(float), plan->context->ops->space};
    mla_need none = {0, 1, scale.space};
    const mla_buffers *b = buffers;
    int i = 0;
    spans[i++] = span_of("kv_pool", b->kv_pool.data, b->kv_pool.bytes, need->kv_pool);
    spans[i++] = span_of("query", b->query.data, b->query.bytes, need->query);
    spans[i++] = span_of("block_table", b->block_table.data, b->block_table.bytes,
                         need->block_table);
    spans[i++] = span_of("context_lens", b->context_lens.data, b->context_lens.bytes,
                         need->context_lens);
    spans[i++] = span_of("query_starts", b->query_starts.data, b->query_starts.bytes,
                         need->query_starts);
    spans[i++] = span_of("kv_scale", b->kv_scale.data, b->kv_scale.bytes,
                         caps->kv_format == MLA_KV_FP8 ? scale : none);
    spans[i++] = span_of("query_scale", b->query_scale.data, b->query_scale.bytes,
                         caps->query_dtype == MLA_E4M3 ? scale : none);
    spans[i++] = span_of("output", b->output.data, b->output.bytes, need->output);
    spans[i++] = span_of("lse", b->lse.data, b->lse.bytes, need->lse);
    spans[i++] =
        span_of("workspace", b->workspace.data, b->workspace.bytes, need->workspace);
}

static mla_status check_span(const span *s, mla_error *err)
{
    if (s->need.bytes == 0) {
        MLAI_CHECK(!s->data && s->bytes == 0, MLA_ERR_ARGUMENT,
                   "%s has %zu bytes, and the plan's formats have no such scale", s->name,
                   s->bytes);
        return MLA_OK;
    }
    MLAI_CHECK(s->data, MLA_ERR_ARGUMENT, "%s is NULL, and needs %zu bytes", s->name,
               s->need.bytes);
    MLAI_CHECK(s->bytes >= s->need.bytes, MLA_ERR_BUFFER_SMALL,
               "%s has %zu bytes, and needs %zu", s->name, s->bytes, s->need.bytes);
    MLAI_CHECK((uintptr_t)s->data % s->need.align_bytes == 0, MLA_ERR_ARGUMENT,
               "%s lies at %p, not at a multiple of %u bytes", s->name, s->data,
               s->need.align_bytes);
    MLAI_CHECK(s->bytes <= UINTPTR_MAX - (uintptr_t)s->data, MLA_ERR_ARGUMENT,
               "%s has %zu bytes at %p, more than memory reaches", s->name, s->bytes,
               s->data);
    return MLA_OK;
}

static mla_status check_apart(const span *a, const span *b, mla_error *err)
{
    uintptr_t a_begin = (uintptr_t)a->data;
    uintptr_t b_begin = (uintptr_t)b->data;
    MLAI_CHECK(a->bytes == 0 || b->bytes == 0 || a_begin + a->bytes <= b_begin ||
                   b_begin + b->bytes <= a_begin,
               MLA_ERR_ARGUMENT, "%s (%zu bytes at %p) overlaps %s (%zu bytes at %p)",
               a->name, a->bytes, a->data, b->name, b->bytes, b->data);
    return MLA_OK;
}

mla_status mlai_buffers_check(const mla_plan *plan, const mla_buffers *buffers,
                              mla_error *err)
{
    mla_requirements need = MLA_INIT(mla_requirements);
    span spans[NUM_SPANS];
    MLAI_TRY(mla_plan_requirements(plan, &need, err));
    list_spans(plan, buffers, &need, spans);
    for (int i = 0; i < NUM_SPANS; i++) {
        MLAI_TRY(check_span(&spans[i], err));
        for (int j = 0; j < i; j++) {
            MLAI_TRY(check_apart(&spans[j], &spans[i], err));
        }
    }
    return MLA_OK;
}
