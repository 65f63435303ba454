/* A model's directory becomes something that answers: what only the whole of it can show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/loaded_model.h"
#include "support/tiny_model.h"

static void the_tokenizers_end_token_ends_a_text_where_the_configs_name_none(void **state)
{
    (void)state;
    mla_error err = {0};
    loaded_model loaded = {0};
    tiny_model tiny = tiny_model_write();
    tiny_model_patch(&tiny, "config.json", "\"eos_token_id\": 262,", "");
    tiny_model_drop(&tiny, "generation_config.json");
    model_options options = {.dir = tiny.dir, .num_threads = 1};
    if (loaded_model_open(&loaded, &options, &err) != MLA_OK ||
        loaded_model_load(&loaded, &options, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    const model_config *config = model_config_of(loaded.model);
    assert_int_equal(config->num_eos_tokens, 1);
    assert_int_equal(config->eos_tokens[0], TINY_EOS);
    assert_int_equal(loaded_model_close(&loaded, &err), MLA_OK);
    tiny_model_remove(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tokenizers_end_token_ends_a_text_where_the_configs_name_none),
    };
    return cmocka_run_group_tests_name("loaded_model", tests, NULL, NULL);
}
