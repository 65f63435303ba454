#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/weights.h"
#include "support/books.h"
#include "support/tiny_model.h"

static mla_status load(mla_context *books, const char *dir, model_config *config,
                       model_weights *weights, mla_error *err)
{
    MLAI_TRY(model_config_read(&books->ledger, dir, config, err));
    return model_weights_open(books, dir, config, weights, err);
}

static void the_demo_model_resolves_whole(void **state)
{
    (void)state;
    mla_context books = books_open(NULL);
    model_config config;
    model_weights weights;
    mla_error err = {0};
    if (load(&books, TEST_MODELS "/demo", &config, &weights, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(weights.embedding.num_out, 4096);
    assert_int_equal(weights.lm_head.num_in, 256);
    assert_true(weights.lm_head.data != weights.embedding.data);
    assert_null(weights.layers[0].experts);
    assert_non_null(weights.layers[0].mlp.down.data);
    assert_null(weights.layers[0].q.data);
    for (int layer = 1; layer < 4; layer++) {
        assert_null(weights.layers[layer].mlp.down.data);
        assert_non_null(weights.layers[layer].shared_experts.up.data);
        assert_int_equal(weights.layers[layer].router_bias.num, 16);
        assert_int_equal(weights.layers[layer].kv_a.num_out, 576);
        assert_int_equal(weights.layers[layer].kv_b.num_out, 8 * 64);
        for (int expert = 0; expert < 16; expert++) {
            assert_int_equal(weights.layers[layer].experts[expert].down.num_out, 256);
        }
    }
    assert_int_equal(mlai_ledger_now(&books.ledger, MLA_SPACE_HOST, MLA_FOR_WEIGHTS),
                     15098056);
    model_weights_close(&weights);
    assert_int_equal(books_now(&books), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_demo_model_resolves_whole),
    };
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
