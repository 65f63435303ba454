/* A lane's workspace: the largest that was asked for, lent to one at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "attention/lane.h"
#include "support/fake_cuda.h"
#include "support/rig.h"

static void expect_text(const mla_error *err, const char *text)
{
    if (!strstr(err->message, text)) {
        fail_msg("\"%s\" does not say \"%s\"", err->message, text);
    }
}

static uint64_t held(const mla_context *context)
{
    return mlai_ledger_now(&context->ledger, context->ops->space, MLA_FOR_ACTIVATIONS);
}

static void destroy(mla_context *context)
{
    assert_int_equal(mla_context_destroy(&context, NULL), MLA_OK);
}

static void expect_the_largest(void)
{
    mla_context *context = rig_context(1, NULL);
    mlai_lane lane = mlai_lane_open(context, MLA_FOR_ACTIVATIONS);
    mlai_loan loan;
    assert_int_equal(mlai_lane_reserve(&lane, 1000, NULL), MLA_OK);
    assert_int_equal(mlai_lane_reserve(&lane, 5000, NULL), MLA_OK);
    assert_int_equal(mlai_lane_reserve(&lane, 300, NULL), MLA_OK);
    assert_true(held(context) == 5000); /* the most, not the sum */
    assert_int_equal(mlai_lane_borrow(&lane, 5000, &loan, NULL), MLA_OK);
    assert_true(loan.workspace.bytes == 5000 && loan.workspace.data != NULL);
    assert_int_equal(mlai_lane_give_back(&lane, &loan, NULL), MLA_OK);
    mlai_lane_close(&lane);
    assert_true(held(context) == 0);
    destroy(context);
}

static void a_lane_has_room_for_the_largest(void **state)
{
    (void)state;
    expect_the_largest();
    fake_cuda_begin();
    rig_backend = MLA_BACKEND_CUDA;
    expect_the_largest();
    rig_backend = MLA_BACKEND_CPU;
    fake_cuda_end();
}

static void loans_do_not_overlap(void **state)
{
    (void)state;
    mla_error err;
    mla_context *context = rig_context(1, NULL);
    mlai_lane lane = mlai_lane_open(context, MLA_FOR_ACTIVATIONS);
    mlai_loan first;
    mlai_loan second = {.generation = 0};
    assert_int_equal(mlai_lane_reserve(&lane, 1000, NULL), MLA_OK);
    assert_int_equal(mlai_lane_borrow(&lane, 1001, &first, &err), MLA_ERR_BUFFER_SMALL);
    expect_text(&err, "1001");
    assert_int_equal(mlai_lane_borrow(&lane, 1000, &first, &err), MLA_OK);
    assert_int_equal(mlai_lane_borrow(&lane, 1, &second, &err), MLA_ERR_STATE);
    expect_text(&err, "lent already");
    assert_null(second.workspace.data);
    assert_int_equal(mlai_lane_reserve(&lane, 2000, &err), MLA_ERR_STATE); /* nor moves */
    assert_int_equal(mlai_lane_give_back(&lane, &first, &err), MLA_OK);
    assert_int_equal(mlai_lane_give_back(&lane, &first, &err), MLA_ERR_STATE);
    expect_text(&err, "given back before");
    assert_int_equal(mlai_lane_borrow(&lane, 1, &second, &err), MLA_OK);
    assert_int_equal(mlai_lane_give_back(&lane, &first, &err),
                     MLA_ERR_STATE); /* the old one */
    assert_int_equal(mlai_lane_give_back(&lane, &second, &err), MLA_OK);
    mlai_lane_close(&lane);
    destroy(context);
}

static void what_a_graph_may_hold_does_not_move(void **state)
{
    (void)state;
    mla_error err;
    mla_context *context = rig_context(1, NULL);
    mlai_lane lane = mlai_lane_open(context, MLA_FOR_ACTIVATIONS);
    assert_int_equal(mlai_lane_reserve(&lane, 1000, NULL), MLA_OK);
    const void *data = lane.data;
    assert_int_equal(mla_context_freeze(context, NULL), MLA_OK);
    assert_int_equal(mlai_lane_reserve(&lane, 1001, &err), MLA_ERR_FROZEN);
    mlai_lane_fix(&lane);
    assert_int_equal(mlai_lane_reserve(&lane, 1001, &err), MLA_ERR_STATE);
    expect_text(&err, "1001");
    assert_int_equal(mlai_lane_reserve(&lane, 1000, &err), MLA_OK);
    assert_ptr_equal(lane.data, data);
    mlai_lane_close(&lane);
    destroy(context);
}

typedef struct borrower {
    mlai_lane *lane;
    atomic_int *num_inside;
    int num_loans, num_overlaps;
} borrower;

static void *borrow_often(void *arg)
{
    enum { NUM = 5000 };
    borrower *b = arg;
    mlai_loan loan;
    while (b->num_loans < NUM) {
        if (mlai_lane_borrow(b->lane, 1, &loan, NULL) != MLA_OK) {
            continue;
        }
        b->num_overlaps += atomic_fetch_add(b->num_inside, 1) != 0;
        b->num_loans++;
        atomic_fetch_sub(b->num_inside, 1);
        b->num_overlaps += mlai_lane_give_back(b->lane, &loan, NULL) != MLA_OK;
    }
    return NULL;
}

static void two_threads_never_hold_it_together(void **state)
{
    (void)state;
    mla_context *context = rig_context(1, NULL);
    mlai_lane lane = mlai_lane_open(context, MLA_FOR_ACTIVATIONS);
    atomic_int num_inside = 0;
    borrower b[2] = {{&lane, &num_inside, 0, 0}, {&lane, &num_inside, 0, 0}};
    pthread_t thread[2];
    assert_int_equal(mlai_lane_reserve(&lane, 1, NULL), MLA_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, borrow_often, &b[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(b[i].num_overlaps, 0);
    }
    mlai_lane_close(&lane);
    destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_has_room_for_the_largest),
        cmocka_unit_test(loans_do_not_overlap),
        cmocka_unit_test(what_a_graph_may_hold_does_not_move),
        cmocka_unit_test(two_threads_never_hold_it_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
