/* cases.c - see cases.h. */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

void gpu_case_draw(attend_case *c, uint64_t seed, int index)
{
    rng r = rng_of_seed(seed * 1000003U + (uint64_t)index);
    *c = (attend_case){0};
    draw_caps(&c->caps, &r);
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
    attend_case_build(c, &r);
}

static double relative_of(const attend_case *c, double score_magnitude)
{
    double weight = c->caps.kv_format == MLA_KV_FP8 ? 0x1p-11 : 0x1p-8;
    return expm1(2 * 0x1p-20 * (score_magnitude + 16)) + 1.01 * weight;
}

static void judge(gpu_verdict *v, const attend_case *c, const char *what, int64_t query,
                  int64_t column, double got, double expected, double allowed)
{
    double error = fabs(got - expected);
    bool is_right = isfinite(expected) ? error <= allowed
                    : isnan(expected)  ? isnan(got)
                                       : got == expected;
    if (!is_right && v->num_wrong++ == 0) {
        (void)snprintf(v->first_wrong, sizeof v->first_wrong,
                       "%s[%lld of %lld][%lld] is %.7g, not %.7g +- %.2g", what,
                       (long long)query, (long long)c->num_queries, (long long)column, got,
                       expected, allowed);
    }
    if (isfinite(expected) && allowed > 0) {
        v->worst_share = fmax(v->worst_share, error / allowed);
    }
}

gpu_verdict gpu_case_judge(const attend_case *c, const float *out, const float *lse)
{
    gpu_verdict v = {0};
    double u_out = c->caps.output_dtype == MLA_BF16 ? 0x1p-8 : 0x1p-24;
    /* f16 weights below 2^-28 of the largest lose digits: 2^-39 each, times a value */
    double absolute = c->caps.kv_format == MLA_KV_FP8 ? 0x1p-32 : 0x1p-100;
    for (int64_t q = 0; q < c->num_queries; q++) {
        double ref_lse = c->expected.lse[q];
        bool is_empty = ref_lse == -HUGE_VAL;
        double score = c->expected.score_magnitude[q];
        double delta = 0x1p-20 * (score + 16) + 4 * 0x1p-24 * (fabs(ref_lse) + 16);
        judge(&v, c, "lse", q, 0, (double)lse[q], ref_lse, is_empty ? 0 : delta);
        for (int64_t d = 0; d < c->caps.latent_dim; d++) {
            int64_t at = q * c->caps.latent_dim + d;
            double ref = c->expected.out[at];
            double allowed = relative_of(c, score) * c->expected.magnitude[at] +
                             1.01 * u_out * fabs(ref) + absolute;
            judge(&v, c, "out", q, d, (double)out[at], ref, is_empty ? 0 : allowed);
        }
    }
    return v;
}
