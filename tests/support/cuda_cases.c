/* cuda_cases.c - see cuda_cases.h. */
#include "support/cuda_cases.h"

enum { LONG_TOKENS = 98304 };
#define NUM(a)     ((int64_t)(sizeof(a) / sizeof(a)[0]))
#define PICK(r, a) ((a)[rng_between(r, 0, NUM(a) - 1)])

static const int32_t dims[][2] = {{512, 64},  {512, 64}, {512, 64}, {256, 32}, {256, 64},
                                  {1024, 64}, {128, 16}, {64, 16},  {192, 32}, {384, 0}};
static const int32_t heads[] = {1, 3, 6, 8, 12, 16, 16, 20, 40, 96};
static const int32_t pages[] = {1, 16, 32, 48, 64, 64};
static const int32_t windows[] = {0, 0, 0, 1, 17, 100, 513};
static const int32_t lengths[] = {-3, 0, 1, 2, 15, 17, 63, 64, 65, 100, 129, 200, 300, 513};
static const int32_t rows[] = {0, 1, 1, 2, 3, 4, 5, 8};

static void draw_caps(mla_caps *caps, rng *r)
{
    int64_t which = rng_between(r, 0, NUM(dims) - 1);
    caps->latent_dim = dims[which][0];
    caps->rope_dim = dims[which][1];
    caps->kv_format = (mla_kv_format)rng_between(r, 1, 3);
    if (caps->kv_format == MLA_KV_FP8_G128 && caps->latent_dim % 128 != 0) {
        caps->kv_format = MLA_KV_FP8;
    }
    caps->query_dtype = rng_between(r, 0, 2) > 0 ? MLA_BF16 : MLA_E4M3;
    caps->output_dtype = rng_between(r, 0, 1) ? MLA_BF16 : MLA_F32;
    caps->num_heads = PICK(r, heads);
    caps->page_tokens = PICK(r, pages);
    caps->causal = rng_between(r, 0, 3) > 0;
    caps->window = PICK(r, windows);
    caps->softmax_scale = 0.11F;
    caps->mode = MLA_EXTEND;
    if (rng_between(r, 0, 2) == 0) {
        size_t page = (size_t)caps->page_tokens *
                      mla_kv_row_bytes(caps->kv_format, caps->latent_dim, caps->rope_dim);
        caps->page_stride_bytes = (int64_t)((page + 15) / 16 * 16 + 192);
    }
    if (rng_between(r, 0, 4) == 0) {
        caps->table_width = (int32_t)rng_between(r, 1, 4);
    }
}

/* What has tiles of 64 query rows where a device has room for them. */
static void make_wide(mla_caps *caps, rng *r)
{
    caps->latent_dim = dims[0][0];
    caps->rope_dim = dims[0][1];
    caps->kv_format = rng_between(r, 0, 1) ? MLA_KV_BF16 : MLA_KV_FP8;
    caps->num_heads = (int32_t)rng_between(r, 33, 100);
    caps->page_tokens = rng_between(r, 0, 1) ? 64 : 48;
    caps->page_stride_bytes = 0;
    caps->window = 0;
    caps->table_width = LONG_TOKENS / caps->page_tokens;
}

static rng draw_case(attend_case *c, uint64_t seed, int index)
{
    rng r = rng_of_seed(seed * 1000003U + (uint64_t)index);
    *c = (attend_case){0};
    draw_caps(&c->caps, &r);
    if (index % 4 == 1) {
        make_wide(&c->caps, &r);
    }
    c->num_requests = (int32_t)rng_between(&r, 1, ATTEND_MAX_REQUESTS);
    c->has_bad_pages = rng_between(&r, 0, 3) == 0;
    c->logit_deviation = rng_between(&r, 0, 3) == 0 ? 40 : 0;
    int64_t pairs = 0; /* the oracle's work */
    for (int32_t i = 0; i < c->num_requests; i++) {
        c->lens[i] = PICK(&r, lengths);
        c->rows[i] = PICK(&r, rows);
        pairs +=
            (int64_t)(c->lens[i] > 0 ? c->lens[i] : 0) * c->rows[i] * c->caps.num_heads;
        if (pairs > 60000) {
            c->rows[i] = c->lens[i] > 64 && i > 0 ? 0 : 1;
        }
    }
    if (index % 8 == 0) { /* one long request, in decode */
        c->num_requests = 1;
        c->lens[0] = (int32_t)rng_between(&r, 1000, 5000);
        c->rows[0] = 1;
        c->caps.num_heads = c->caps.num_heads > 8 ? 6 : c->caps.num_heads;
        c->caps.table_width = 0;
    }
    return r;
}

void gpu_case_shape(attend_case *c, uint64_t seed, int index)
{
    (void)draw_case(c, seed, index);
    attend_case_shape(c);
}

void gpu_case_draw(attend_case *c, uint64_t seed, int index)
{
    rng r = draw_case(c, seed, index);
    attend_case_build(c, &r);
}
