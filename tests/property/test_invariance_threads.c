/* The bits of a row depend on its own request and position only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "attention/oracle.h"
#include "support/rig.h"

/* Coarse: the oracle suite holds the derived bound. This says that the rig computes
 * attention at all, so that equal bits mean something. */
static void expect_near_oracle(const rig *r)
{
    size_t queries = (size_t)r->batch.num_query_rows * (size_t)r->caps.num_heads;
    size_t values = queries * (size_t)r->caps.latent_dim;
    mlai_oracle_out want = {calloc(values, sizeof(double)), calloc(queries, sizeof(double)),
                            NULL, NULL};
    mlai_oracle_attend(&r->caps, &r->buffers, &r->batch, &want);
    const float *out = r->buffers.output.data;
    const float *lse = r->buffers.lse.data;
    for (size_t i = 0; i < values; i++) {
        assert_true(fabs((double)out[i] - want.out[i]) <= 1e-4);
    }
    for (size_t i = 0; i < queries; i++) {
        assert_true((double)lse[i] == want.lse[i] ||
                    fabs((double)lse[i] - want.lse[i]) <= 1e-4);
    }
    free(want.out);
    free(want.lse);
}

static void a_run_is_attention(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(5, 40, 3000);
    rig r = rig_open(&caps, 2, 7);
    const rig_request requests[] = {
        {1, 2900, 17}, {2, 0, 1}, {3, 65, 3}, {4, 1, 1}, {5, 3, 7}};
    rig_load(&r, requests, 5);
    rig_run(&r);
    expect_near_oracle(&r);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_is_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
