/* The ledger: what is in its cells, its limit and its freeze. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/ledger.h"

static mlai_ledger ledger_of(uint64_t limit_bytes)
{
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, NULL, limit_bytes, NULL), MLA_OK);
    return ledger;
}

static mla_memory_cell cell_of(const mlai_ledger *ledger, mla_space space,
                               mla_purpose purpose)
{
    mla_memory_report report;
    memset(&report, 0, sizeof report);
    mlai_ledger_report(ledger, &report);
    return report.cell[space][purpose];
}

static void assert_cell(mla_memory_cell cell, uint64_t now, uint64_t peak, uint64_t allocs,
                        uint64_t frees)
{
    assert_true(cell.now_bytes == now);
    assert_true(cell.peak_bytes == peak);
    assert_true(cell.num_allocs == allocs);
    assert_true(cell.num_frees == frees);
}

static mla_status take(mlai_ledger *ledger, mla_purpose purpose, size_t bytes, void **out)
{
    return mlai_ledger_take(ledger, MLA_SPACE_HOST, purpose, bytes, 64, "a block", out,
                            NULL);
}

static void give(mlai_ledger *ledger, mla_purpose purpose, size_t bytes, void *data)
{
    mlai_ledger_give(ledger, MLA_SPACE_HOST, purpose, bytes, data);
}

static void every_purpose_and_space_has_its_name(void **state)
{
    (void)state;
    static const char *const purposes[] = {"context",     "session", "plan",    "binding",
                                           "graph",       "comm",    "weights", "kv",
                                           "activations", "drafter", "server",  "other"};
    static const char *const spaces[] = {"host", "pinned", "device"};
    assert_int_equal(sizeof purposes / sizeof purposes[0], MLA_NUM_PURPOSES);
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        assert_string_equal(mla_purpose_name((mla_purpose)i), purposes[i]);
    }
    for (int i = 0; i < MLA_NUM_SPACES; i++) {
        assert_string_equal(mla_space_name((mla_space)i), spaces[i]);
    }
    assert_null(mla_purpose_name(MLA_NUM_PURPOSES));
    assert_null(mla_purpose_name((mla_purpose)-1));
    assert_null(mla_space_name(MLA_NUM_SPACES));
    assert_null(mla_space_name((mla_space)-1));
}

static void a_cell_counts_now_peak_and_calls_of_its_own_purpose_only(void **state)
{
    (void)state;
    mlai_ledger ledger = ledger_of(0);
    void *first = NULL;
    void *second = NULL;
    void *other = NULL;
    assert_int_equal(take(&ledger, MLA_FOR_PLAN, 100, &first), MLA_OK);
    assert_int_equal(take(&ledger, MLA_FOR_PLAN, 50, &second), MLA_OK);
    assert_int_equal(take(&ledger, MLA_FOR_KV, 7, &other), MLA_OK);
    assert_cell(cell_of(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN), 150, 150, 2, 0);
    give(&ledger, MLA_FOR_PLAN, 100, first);
    assert_cell(cell_of(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN), 50, 150, 2, 1);
    assert_int_equal(take(&ledger, MLA_FOR_PLAN, 60, &first), MLA_OK);
    assert_cell(cell_of(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN), 110, 150, 3, 1);
    assert_cell(cell_of(&ledger, MLA_SPACE_HOST, MLA_FOR_KV), 7, 7, 1, 0);
    give(&ledger, MLA_FOR_PLAN, 60, first);
    give(&ledger, MLA_FOR_PLAN, 50, second);
    give(&ledger, MLA_FOR_KV, 7, other);
    give(&ledger, MLA_FOR_KV, 7, NULL); /* allowed, and not counted */
    assert_cell(cell_of(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN), 0, 150, 3, 3);
    assert_cell(cell_of(&ledger, MLA_SPACE_HOST, MLA_FOR_KV), 0, 7, 1, 1);
    for (int purpose = 0; purpose < MLA_NUM_PURPOSES; purpose++) {
        assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, (mla_purpose)purpose) == 0);
    }
}

static void memory_is_aligned_as_asked_and_zeroed_where_promised(void **state)
{
    (void)state;
    mlai_ledger ledger = ledger_of(0);
    for (size_t align = 1; align <= 4096; align *= 2) {
        void *data = NULL;
        assert_int_equal(mlai_ledger_take(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN, 3, align,
                                          "a block", &data, NULL),
                         MLA_OK);
        assert_int_equal((uintptr_t)data % align, 0);
        give(&ledger, MLA_FOR_PLAN, 3, data);
    }
    unsigned char *zeroed = NULL;
    assert_int_equal(mlai_ledger_take_zeroed(&ledger, MLA_FOR_PLAN, 100, 3, "zeros",
                                             (void **)&zeroed, NULL),
                     MLA_OK);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(zeroed[i], 0);
    }
    give(&ledger, MLA_FOR_PLAN, 300, zeroed);
}

static void a_take_that_cannot_be_is_refused_and_writes_nothing(void **state)
{
    (void)state;
    mlai_ledger ledger = ledger_of(0);
    void *out = &ledger;
    assert_int_equal(take(&ledger, MLA_FOR_PLAN, 0, &out), MLA_ERR_ARGUMENT);
    assert_int_equal(take(&ledger, MLA_NUM_PURPOSES, 8, &out), MLA_ERR_ARGUMENT);
    assert_int_equal(take(&ledger, (mla_purpose)-1, 8, &out), MLA_ERR_ARGUMENT);
    assert_int_equal(
        mlai_ledger_take(&ledger, MLA_NUM_SPACES, MLA_FOR_PLAN, 8, 8, "x", &out, NULL),
        MLA_ERR_ARGUMENT);
    for (size_t align = 0; align <= 100; align += align == 0 ? 3 : align) {
        assert_int_equal(mlai_ledger_take(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN, 8, align,
                                          "x", &out, NULL),
                         MLA_ERR_ARGUMENT);
    }
    assert_int_equal(
        mlai_ledger_take_zeroed(&ledger, MLA_FOR_PLAN, SIZE_MAX / 2, 3, "x", &out, NULL),
        MLA_ERR_NO_MEMORY);
    assert_int_equal(take(&ledger, MLA_FOR_PLAN, SIZE_MAX / 2, &out), MLA_ERR_NO_MEMORY);
    mla_error err;
    assert_int_equal(mlai_ledger_take(&ledger, MLA_SPACE_DEVICE, MLA_FOR_KV, 8, 8,
                                      "the pages", &out, &err),
                     MLA_ERR_NO_MEMORY); /* the C library has no device memory */
    assert_string_equal(err.message,
                        "out of memory: 8 bytes of device memory for the pages");
    assert_ptr_equal(out, &ledger);
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        assert_true(ledger.space_now_bytes[space] == 0);
    }
    assert_cell(cell_of(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN), 0, 0, 0, 0);
}

static void the_limit_holds_to_the_byte_over_all_purposes_of_a_space(void **state)
{
    (void)state;
    mlai_ledger ledger = ledger_of(1000);
    void *first = NULL;
    void *second = NULL;
    void *refused = NULL;
    mla_error err;
    assert_int_equal(take(&ledger, MLA_FOR_PLAN, 600, &first), MLA_OK);
    assert_int_equal(mlai_ledger_take(&ledger, MLA_SPACE_HOST, MLA_FOR_KV, 401, 64,
                                      "the pages", &refused, &err),
                     MLA_ERR_NO_MEMORY);
    assert_string_equal(err.message, "the pages needs 401 bytes of host memory, and 600 of "
                                     "the limit of 1000 are taken");
    assert_int_equal(take(&ledger, MLA_FOR_KV, 400, &second), MLA_OK);
    assert_int_equal(take(&ledger, MLA_FOR_KV, 1, &refused), MLA_ERR_NO_MEMORY);
    assert_null(mlai_ledger_hook_alloc(&ledger, MLA_FOR_SERVER, 1));
    assert_int_equal(
        mlai_ledger_book(&ledger, MLA_SPACE_HOST, MLA_FOR_WEIGHTS, 1, "a file", NULL),
        MLA_ERR_NO_MEMORY);
    assert_int_equal(mlai_ledger_book(&ledger, MLA_SPACE_PINNED, MLA_FOR_WEIGHTS, 1000,
                                      "another space", NULL),
                     MLA_OK);
    give(&ledger, MLA_FOR_PLAN, 600, first);
    assert_int_equal(take(&ledger, MLA_FOR_KV, 600, &first), MLA_OK);
    give(&ledger, MLA_FOR_KV, 600, first);
    give(&ledger, MLA_FOR_KV, 400, second);
}

static void a_refused_allocation_leaves_room_for_the_next(void **state)
{
    (void)state;
    mlai_ledger ledger = ledger_of(1000);
    void *out = NULL;
    for (int i = 0; i < 10; i++) { /* pinned memory fails at the C library */
        assert_int_equal(mlai_ledger_take(&ledger, MLA_SPACE_PINNED, MLA_FOR_KV, 900, 8,
                                          "x", &out, NULL),
                         MLA_ERR_NO_MEMORY);
        assert_true(ledger.space_now_bytes[MLA_SPACE_PINNED] == 0);
    }
}

static void the_freeze_refuses_all_but_the_server(void **state)
{
    (void)state;
    mlai_ledger ledger = ledger_of(0);
    void *before = NULL;
    assert_int_equal(take(&ledger, MLA_FOR_PLAN, 64, &before), MLA_OK);
    mlai_ledger_freeze(&ledger);
    for (int i = 0; i < MLA_NUM_PURPOSES; i++) {
        mla_purpose purpose = (mla_purpose)i;
        mla_status wanted = purpose == MLA_FOR_SERVER ? MLA_OK : MLA_ERR_FROZEN;
        void *data = NULL;
        mla_error err;
        assert_int_equal(mlai_ledger_take(&ledger, MLA_SPACE_HOST, purpose, 64, 64,
                                          "the table", &data, &err),
                         wanted);
        if (wanted != MLA_OK) {
            assert_non_null(strstr(err.message, "the table needs 64 bytes"));
            assert_non_null(strstr(err.message, mla_purpose_name(purpose)));
        }
        give(&ledger, purpose, 64, data);
        assert_int_equal(
            mlai_ledger_book(&ledger, MLA_SPACE_HOST, purpose, 64, "a file", NULL), wanted);
    }
    give(&ledger, MLA_FOR_PLAN, 64, before); /* giving back stays legal */
    assert_true(mlai_ledger_now(&ledger, MLA_SPACE_HOST, MLA_FOR_PLAN) == 0);
}

static void booked_memory_is_counted_and_struck_out_only_if_it_is_there(void **state)
{
    (void)state;
    mlai_ledger ledger = ledger_of(0);
    const mla_space host = MLA_SPACE_HOST;
    const mla_purpose weights = MLA_FOR_WEIGHTS;
    assert_int_equal(mlai_ledger_book(&ledger, host, weights, 500, "a file", NULL), MLA_OK);
    assert_int_equal(mlai_ledger_book(&ledger, host, weights, 250, "a file", NULL), MLA_OK);
    assert_int_equal(mlai_ledger_book(&ledger, host, weights, -500, "a file", NULL),
                     MLA_OK);
    assert_cell(cell_of(&ledger, host, weights), 250, 750, 2, 1);
    static const int64_t refused[] = {0, -251, INT64_MIN};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(
            mlai_ledger_book(&ledger, host, weights, refused[i], "a file", NULL),
            MLA_ERR_ARGUMENT);
    }
    assert_int_equal(mlai_ledger_book(&ledger, host, MLA_NUM_PURPOSES, -1, "x", NULL),
                     MLA_ERR_ARGUMENT);
    assert_int_equal(mlai_ledger_book(&ledger, (mla_space)-1, weights, -1, "x", NULL),
                     MLA_ERR_ARGUMENT);
    assert_cell(cell_of(&ledger, host, weights), 250, 750, 2, 1);
    assert_int_equal(mlai_ledger_book(&ledger, host, weights, INT64_MAX, "x", NULL),
                     MLA_OK);
    assert_int_equal(mlai_ledger_book(&ledger, host, weights, INT64_MAX, "x", NULL),
                     MLA_ERR_NO_MEMORY); /* the sum would wrap round */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_purpose_and_space_has_its_name),
        cmocka_unit_test(a_cell_counts_now_peak_and_calls_of_its_own_purpose_only),
        cmocka_unit_test(memory_is_aligned_as_asked_and_zeroed_where_promised),
        cmocka_unit_test(a_take_that_cannot_be_is_refused_and_writes_nothing),
        cmocka_unit_test(the_limit_holds_to_the_byte_over_all_purposes_of_a_space),
        cmocka_unit_test(a_refused_allocation_leaves_room_for_the_next),
        cmocka_unit_test(the_freeze_refuses_all_but_the_server),
        cmocka_unit_test(booked_memory_is_counted_and_struck_out_only_if_it_is_there),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
