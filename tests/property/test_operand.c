/* Arrays of an attention call on the CPU and on CUDA (the fake driver): the caller's memory in
 * the spaces that a context has, and copies between both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "attention/context.h"
#include "cli/operand.h"
#include "support/fake_cuda.h"
#include "support/rig.h"

static int begin(void **state)
{
    (void)state;
    fake_cuda_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    rig_backend = MLA_BACKEND_CPU;
    fake_cuda_end();
    return 0;
}

static mla_context *cuda_context(void)
{
    rig_backend = MLA_BACKEND_CUDA;
    return rig_context(1, NULL);
}

static void a_cuda_context_keeps_the_callers_memory_in_three_spaces(void **state)
{
    (void)state;
    mla_context *context = cuda_context();
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        void *data = NULL;
        assert_int_equal(
            mla_memory_take(context, (mla_space)space, MLA_FOR_KV, 1000, 256, &data, NULL),
            MLA_OK);
        assert_int_equal(mlai_ledger_now(&context->ledger, (mla_space)space, MLA_FOR_KV),
                         1000);
        mla_error err = {0};
        mla_context *same = context;
        assert_int_equal(mla_context_destroy(&same, &err), MLA_ERR_STATE);
        assert_non_null(strstr(err.message, mla_space_name((mla_space)space)));
        mla_memory_give(context, (mla_space)space, MLA_FOR_KV, 1000, data);
    }
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void a_booking_is_struck_out_of_its_own_space_only(void **state)
{
    (void)state;
    mla_context *context = cuda_context();
    assert_int_equal(mla_memory_book(context, MLA_SPACE_DEVICE, MLA_FOR_KV, 500, NULL),
                     MLA_OK);
    assert_int_equal(mla_memory_book(context, MLA_SPACE_HOST, MLA_FOR_KV, -500, NULL),
                     MLA_ERR_ARGUMENT);
    assert_int_equal(mla_memory_book(context, MLA_SPACE_DEVICE, MLA_FOR_KV, -500, NULL),
                     MLA_OK);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void the_driver_aligns_to_256_bytes_and_no_more(void **state)
{
    (void)state;
    mla_error err = {0};
    void *data = NULL;
    mla_context *context = cuda_context();
    assert_int_equal(
        mla_memory_take(context, MLA_SPACE_DEVICE, MLA_FOR_KV, 8, 512, &data, &err),
        MLA_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "512"));
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void check_copies(mla_context *context)
{
    const mla_need need = {5, 1, context->ops->space};
    operand both = {0};
    operand one = {0};
    assert_int_equal(
        operand_take(context, &need, MLA_FOR_KV, OPERAND_BOTH_SIDES, &both, NULL), MLA_OK);
    assert_int_equal(
        operand_take(context, &need, MLA_FOR_KV, OPERAND_DEVICE_ONLY, &one, NULL), MLA_OK);
    memcpy(both.host, "abcd", 5);
    assert_int_equal(operand_send(context, &both, NULL), MLA_OK);
    assert_memory_equal(both.data, "abcd", 5); /* the fake's devices are host memory */
    memcpy(both.data, "efgh", 5);
    assert_int_equal(operand_fetch(context, &both, NULL), MLA_OK);
    assert_memory_equal(both.host, "efgh", 5);
    assert_int_equal(one.host == one.data, context->ops->space == MLA_SPACE_HOST);
    operand_give(context, &both);
    operand_give(context, &one);
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void both_sides_of_an_operand_meet_when_it_is_sent_and_fetched(void **state)
{
    (void)state;
    check_copies(rig_context(1, NULL));
    check_copies(cuda_context());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cuda_context_keeps_the_callers_memory_in_three_spaces),
        TEST(a_booking_is_struck_out_of_its_own_space_only),
        TEST(the_driver_aligns_to_256_bytes_and_no_more),
        TEST(both_sides_of_an_operand_meet_when_it_is_sent_and_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
