/* Every allocation of loading, preparing and opening fails once and for good, on a whole
 * checkpoint of a few kilobytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "support/fault.h"
#include "support/tiny_model.h"

/* dir -> an engine that has answered. */
static mla_status answer(mla_context *context, const char *dir, mla_error *err)
{
    static const int32_t prompt[3] = {TINY_BOS, 1, 2};
    model *loaded = NULL;
    engine *opened = NULL;
    engine_options options = {.kv_format = MLA_KV_F32, .max_requests = 2};
    engine_request request = {.prompt = prompt, .num_prompt = 3, .max_tokens = 4};
    engine_result result = {0};
    mla_status status = model_load(context, dir, &loaded, err);
    if (status == MLA_OK) {
        status = engine_open(loaded, &options, &opened, err);
    }
    if (status == MLA_OK) {
        status = engine_run(opened, &request, 1, &result, err);
        assert_int_equal(status, MLA_OK);
        assert_true(result.num_tokens >= 1);
    }
    engine_close(&opened);
    model_unload(&loaded);
    assert_null(opened);
    assert_null(loaded);
    return status;
}

static mla_status scenario(const mla_allocator *allocator, void *arg)
{
    const tiny_model *tiny = arg;
    mla_context_options options = MLA_INIT(mla_context_options);
    mla_context *context = NULL;
    mla_error err = {0};
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = 1;
    options.allocator = allocator;
    mla_status status = mla_context_create(&options, &context, &err);
    if (status == MLA_OK) {
        status = answer(context, tiny->dir, &err);
        assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
    }
    return status;
}

static void an_engine_survives_every_failed_allocation(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_write();
    int num_trials = fault_every("an engine", scenario, &tiny, FAULT_MUST_FAIL);
    print_message("%d trials\n", num_trials);
    assert_true(num_trials > 40);
    tiny_model_remove(&tiny);
}

/* A failure at prepare leaves the model as it was: it can be prepared later. */
static void a_model_that_could_not_be_prepared_can_be_prepared_later(void **state)
{
    (void)state;
    tiny_model tiny = tiny_model_write();
    mla_context_options options = MLA_INIT(mla_context_options);
    mla_context *context = NULL;
    model *loaded = NULL;
    mla_error err = {0};
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = 1;
    options.memory_limit_bytes = 64 << 20;
    assert_int_equal(mla_context_create(&options, &context, &err), MLA_OK);
    assert_int_equal(model_load(context, tiny.dir, &loaded, &err), MLA_OK);
    model_limits limits = {.kv_format = MLA_KV_F32,
                           .max_sequences = 1,
                           .max_context_tokens = 64,
                           .num_pages = 1 << 20};
    mla_memory_report before = MLA_INIT(mla_memory_report);
    mla_memory_report after = MLA_INIT(mla_memory_report);
    assert_int_equal(mla_context_memory(context, &before, NULL), MLA_OK);
    assert_int_equal(model_prepare(loaded, &limits, &err), MLA_ERR_NO_MEMORY);
    assert_int_equal(mla_context_memory(context, &after, NULL), MLA_OK);
    for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
        assert_int_equal(before.cell[MLA_SPACE_HOST][purpose].now_bytes,
                         after.cell[MLA_SPACE_HOST][purpose].now_bytes);
    }
    limits.num_pages = 2;
    assert_int_equal(model_prepare(loaded, &limits, &err), MLA_OK);
    assert_int_equal(model_prepare(loaded, &limits, &err), MLA_ERR_STATE);
    model_unload(&loaded);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
    tiny_model_remove(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_survives_every_failed_allocation),
        cmocka_unit_test(a_model_that_could_not_be_prepared_can_be_prepared_later),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
