/* qualify_case.c - the names and the caps of the matrix: see qualify_case.h. */
#include "cli/qualify_case.h"

#include <stdbool.h>
#include <stdio.h>

enum {
    ROPE = QUALIFY_WIDTH - QUALIFY_LATENT,
    PAD_ELEMENTS = 192, /* between two pages */
    PAD_SLOTS = 3,      /* of a table, never in use */
    MAX_ROWS = 4,       /* of one request */
    SHARD_TOKENS = 80,  /* of the longest request, on one rank, with any interleave */
    STRIDE = 29,        /* odd: a permutation of pages, whose number is a power of 2 */
};
#define SOFTMAX_SCALE 0.0721687824F /* 1 / sqrt(128 + 64) */

static const struct {
    const char *name;
    mla_kv_format kv_format;
    mla_dtype query_dtype;
} formats[QUALIFY_NUM_FORMATS] = {
    {"bf16", MLA_KV_BF16, MLA_BF16},
    {"fp8", MLA_KV_FP8, MLA_E4M3},
    {"bf16-on-fp8", MLA_KV_FP8, MLA_BF16},
};
static const char *const kinds[QUALIFY_NUM_KINDS] = {"padded", "high-pages", "f32-replay"};

qualify_case qualify_case_of(int32_t index)
{
    int32_t format = index / (2 * QUALIFY_NUM_KINDS);
    bool is_shared = index / QUALIFY_NUM_KINDS % 2 != 0;
    qualify_case c = {
        .format = format,
        .kv_format = formats[format].kv_format,
        .query_dtype = formats[format].query_dtype,
        .num_ranks = is_shared ? QUALIFY_RANKS : 1,
        .num_heads = is_shared ? 96 : 6,
        .kind = (qualify_kind)(index % QUALIFY_NUM_KINDS),
    };
    (void)snprintf(c.name, sizeof c.name, "%s dcp%d %s", formats[format].name, c.num_ranks,
                   kinds[c.kind]);
    return c;
}

static void set_pool(const qualify_case *c, int64_t high_bytes, mla_caps *caps)
{
    int64_t row_bytes = (int64_t)mla_kv_row_bytes(c->kv_format, QUALIFY_LATENT, ROPE);
    int64_t page_bytes = QUALIFY_PAGE * row_bytes;
    bool is_padded = c->kind == QUALIFY_PADDED;
    caps->num_pages = QUALIFY_INDICES;
    caps->page_stride_bytes =
        page_bytes + (is_padded ? PAD_ELEMENTS * row_bytes / QUALIFY_WIDTH : 0);
    if (c->kind == QUALIFY_HIGH) {
        caps->num_pages += (high_bytes + page_bytes - 1) / page_bytes;
    }
}

mla_caps qualify_case_caps(const qualify_case *c, qualify_part part, int64_t high_bytes)
{
    bool is_whole = part == QUALIFY_WHOLE;
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = is_whole ? MLA_VERIFY : MLA_DECODE;
    caps.kv_format = c->kv_format;
    caps.query_dtype = c->query_dtype;
    caps.output_dtype = is_whole && c->kind != QUALIFY_REPLAY ? MLA_BF16 : MLA_F32;
    caps.num_heads = c->num_heads;
    caps.latent_dim = QUALIFY_LATENT;
    caps.rope_dim = ROPE;
    caps.page_tokens = QUALIFY_PAGE;
    caps.causal = 1;
    caps.softmax_scale = SOFTMAX_SCALE;
    caps.max_requests = is_whole ? QUALIFY_REQUESTS : QUALIFY_ROWS;
    caps.max_query_rows = QUALIFY_ROWS;
    caps.max_rows_per_request = is_whole ? MAX_ROWS : 1;
    caps.max_context_tokens = is_whole ? QUALIFY_TOKENS : SHARD_TOKENS;
    caps.table_width =
        (int32_t)((caps.max_context_tokens + QUALIFY_PAGE - 1) / QUALIFY_PAGE) +
        (c->kind == QUALIFY_PADDED ? PAD_SLOTS : 0);
    set_pool(c, high_bytes, &caps);
    return caps;
}

int32_t qualify_case_page(const qualify_case *c, const mla_caps *caps, int32_t index)
{
    if (c->kind == QUALIFY_HIGH) {
        return index % 2 ? index : (int32_t)caps->num_pages - 1 - index;
    }
    return index * STRIDE % QUALIFY_INDICES;
}
