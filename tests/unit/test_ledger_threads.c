/* Threads that use one ledger at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base/ledger.h"
#include "support/random.h"

static mla_status take(mlai_ledger *ledger, mla_purpose purpose, size_t bytes, void **out)
{
    return mlai_ledger_take(ledger, MLA_SPACE_HOST, purpose, bytes, 64, "a block", out,
                            NULL);
}

static void give(mlai_ledger *ledger, mla_purpose purpose, size_t bytes, void *data)
{
    mlai_ledger_give(ledger, MLA_SPACE_HOST, purpose, bytes, data);
}

enum { NUM_THREADS = 4, NUM_ROUNDS = 10000, MOST_BYTES = 512, THREAD_LIMIT = 900 };

typedef struct runner {
    mlai_ledger *ledger;
    rng random;
    uint64_t num_taken, num_bad;
} runner;

/* Takes, checks that no other thread has the memory, books, strikes out, gives back. */
static void *take_and_give(void *arg)
{
    runner *self = arg;
    unsigned char mark = (unsigned char)rng_u64(&self->random);
    for (int i = 0; i < NUM_ROUNDS; i++) {
        size_t bytes = (size_t)rng_between(&self->random, 1, MOST_BYTES);
        unsigned char *data = NULL;
        if (take(self->ledger, MLA_FOR_KV, bytes, (void **)&data) == MLA_OK) {
            memset(data, mark, bytes);
            uint64_t now = self->ledger->space_now_bytes[MLA_SPACE_HOST];
            self->num_bad += now > THREAD_LIMIT || now < bytes;
            for (size_t k = 0; k < bytes; k++) {
                self->num_bad += data[k] != mark;
            }
            give(self->ledger, MLA_FOR_KV, bytes, data);
            self->num_taken++;
        }
        if (mlai_ledger_book(self->ledger, MLA_SPACE_HOST, MLA_FOR_OTHER, 1, "x", NULL) ==
            MLA_OK) {
            self->num_bad += mlai_ledger_book(self->ledger, MLA_SPACE_HOST, MLA_FOR_OTHER,
                                              -1, "x", NULL) != MLA_OK;
        }
    }
    return NULL;
}

static void threads_never_pass_the_limit_and_leave_even_books(void **state)
{
    (void)state;
    mlai_ledger ledger;
    assert_int_equal(mlai_ledger_init(&ledger, NULL, THREAD_LIMIT, NULL), MLA_OK);
    rng random = rng_start("threads of the ledger");
    runner runners[NUM_THREADS];
    pthread_t threads[NUM_THREADS];
    for (int i = 0; i < NUM_THREADS; i++) {
        runners[i] = (runner){.ledger = &ledger, .random = rng_of_seed(rng_u64(&random))};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &runners[i]), 0);
    }
    uint64_t num_taken = 0;
    for (int i = 0; i < NUM_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(runners[i].num_bad == 0);
        num_taken += runners[i].num_taken;
    }
    mla_memory_report report;
    memset(&report, 0, sizeof report);
    mlai_ledger_report(&ledger, &report);
    mla_memory_cell cell = report.cell[MLA_SPACE_HOST][MLA_FOR_KV];
    assert_true(num_taken > 0);
    assert_true(cell.now_bytes == 0 && cell.num_allocs == num_taken);
    assert_true(cell.num_frees == num_taken);
    assert_true(cell.peak_bytes > 0 && cell.peak_bytes <= THREAD_LIMIT);
    assert_true(ledger.space_now_bytes[MLA_SPACE_HOST] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_never_pass_the_limit_and_leave_even_books),
    };
    return cmocka_run_group_tests_name("ledger_threads", tests, NULL, NULL);
}
