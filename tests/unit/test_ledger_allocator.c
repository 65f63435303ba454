/* Whose memory the ledger hands out: a caller's allocator, and blocks for libraries' hooks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/ledger.h"

typedef struct call_counter {
    int num_allocs, num_releases;
    size_t bytes, align_bytes;
    mla_purpose purpose;
} call_counter;

static void *counted_alloc(void *user, size_t bytes, size_t align_bytes, mla_space space,
                           mla_purpose purpose)
{
    call_counter *calls = user;
    assert_int_equal(space, MLA_SPACE_HOST);
    calls->num_allocs++;
    calls->bytes = bytes;
    calls->align_bytes = align_bytes;
    calls->purpose = purpose;
    return aligned_alloc(align_bytes,
                         (bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static void counted_release(void *user, void *data, size_t bytes, mla_space space,
                            mla_purpose purpose)
{
    call_counter *calls = user;
    assert_int_equal(bytes, calls->bytes);
    assert_int_equal(space, MLA_SPACE_HOST);
    assert_int_equal(purpose, calls->purpose);
    calls->num_releases++;
    free(data);
}

static void the_callers_allocator_is_the_only_one_used(void **state)
{
    (void)state;
    call_counter calls = {0};
    mla_allocator allocator = MLA_INIT(mla_allocator);
    allocator.alloc = counted_alloc;
    allocator.release = counted_release;
    allocator.user = &calls;
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, &allocator, 0, NULL), MLA_OK);
    memset(&allocator, 0, sizeof allocator); /* it was copied */
    void *data = NULL;
    assert_int_equal(
        mlai_ledger_take(&ledger, MLA_SPACE_HOST, MLA_FOR_GRAPH, 33, 32, "x", &data, NULL),
        MLA_OK);
    assert_int_equal(calls.num_allocs, 1);
    assert_int_equal(calls.bytes, 33);
    assert_int_equal(calls.align_bytes, 32);
    assert_int_equal(calls.purpose, MLA_FOR_GRAPH);
    mlai_ledger_give(&ledger, MLA_SPACE_HOST, MLA_FOR_GRAPH, 33, data);
    assert_int_equal(calls.num_releases, 1);
}

static void half_an_allocator_is_refused(void **state)
{
    (void)state;
    mlai_ledger ledger;
    mla_allocator allocator = MLA_INIT(mla_allocator);
    assert_int_equal(mlai_ledger_init(&ledger, &allocator, 0, NULL), MLA_ERR_ARGUMENT);
    allocator.alloc = counted_alloc;
    assert_int_equal(mlai_ledger_init(&ledger, &allocator, 0, NULL), MLA_ERR_ARGUMENT);
    allocator.release = counted_release;
    assert_int_equal(mlai_ledger_init(&ledger, &allocator, 0, NULL), MLA_OK);
    allocator.struct_size = offsetof(mla_allocator, user); /* `user` reads as NULL */
    allocator.user = &ledger;
    assert_int_equal(mlai_ledger_init(&ledger, &allocator, 0, NULL), MLA_OK);
    assert_null(ledger.allocator.user);
    allocator.struct_size--;
    assert_int_equal(mlai_ledger_init(&ledger, &allocator, 0, NULL), MLA_ERR_ARGUMENT);
}

static void hooked_memory_is_booked_with_its_label_and_moves_to_the_server(void **state)
{
    (void)state;
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, NULL, 0, NULL), MLA_OK);
    unsigned char *before = mlai_ledger_hook_alloc(&ledger, MLA_FOR_CONTEXT, 100);
    assert_non_null(before);
    assert_int_equal((uintptr_t)before % 16, 0);
    memset(before, 0xff, 100);
    assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT) >= 100);
    mlai_ledger_freeze(&ledger);
    void *after = mlai_ledger_hook_alloc(&ledger, MLA_FOR_CONTEXT, 0);
    assert_non_null(after);
    assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, MLA_FOR_SERVER) > 0);
    mlai_ledger_hook_free(&ledger, before);
    mlai_ledger_hook_free(&ledger, after);
    mlai_ledger_hook_free(&ledger, NULL);
    assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT) == 0);
    assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, MLA_FOR_SERVER) == 0);
    assert_null(mlai_ledger_hook_alloc(&ledger, MLA_FOR_CONTEXT, SIZE_MAX));
    assert_null(mlai_ledger_hook_alloc(&ledger, MLA_FOR_CONTEXT, SIZE_MAX - 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_callers_allocator_is_the_only_one_used),
        cmocka_unit_test(half_an_allocator_is_refused),
        cmocka_unit_test(hooked_memory_is_booked_with_its_label_and_moves_to_the_server),
    };
    return cmocka_run_group_tests_name("ledger_allocator", tests, NULL, NULL);
}
