/* The bits of a row depend on its own request and position only: on the CPU whatever the plan,
 * on a GPU under one plan. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "attention/oracle.h"
#include "support/gpu.h"
#include "support/rig.h"

/* Coarse: the oracle suite holds the derived bound. This says that the rig computes
 * attention at all, so that equal bits mean something. A GPU rounds weights to bf16. */
static void expect_near_oracle(const rig *r)
{
    size_t queries = (size_t)r->batch.num_query_rows * (size_t)r->caps.num_heads;
    size_t values = queries * (size_t)r->caps.latent_dim;
    mlai_oracle_out want = {calloc(values, sizeof(double)), calloc(queries, sizeof(double)),
                            NULL, NULL};
    mlai_oracle_attend(&r->caps, &r->buffers, &r->batch, &want);
    const float *out = r->buffers.output.data;
    const float *lse = r->buffers.lse.data;
    double allowed = rig_is_on_gpu ? 1e-2 : 1e-4;
    for (size_t i = 0; i < values; i++) {
        assert_true(fabs((double)out[i] - want.out[i]) <= allowed);
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

static mla_caps ragged_caps(void)
{
    mla_caps caps = rig_extend_caps(4, 60, 9000);
    caps.kv_format = MLA_KV_BF16;
    caps.output_dtype = MLA_BF16;
    return caps;
}

static const rig_request ragged[] = {{11, 8200, 30}, {12, 700, 5}, {13, 0, 2}, {14, 8, 8}};
enum { NUM_RAGGED = 4, NUM_RAGGED_ROWS = 45 };

static void expect_same_rows(const rig *a, const rig *b, int32_t num_rows)
{
    for (int32_t i = 0; i < num_rows; i++) {
        assert_true(rig_same_bits(a, i, b, i));
    }
}

static void pages_and_threads_change_no_bit(void **state)
{
    (void)state;
    mla_caps caps = ragged_caps();
    rig one = rig_open(&caps, 1, 1);
    rig_load(&one, ragged, NUM_RAGGED);
    rig_run(&one);
    for (int32_t threads = 2; threads <= 16; threads += 7) { /* which a GPU ignores */
        rig many = rig_open(&caps, threads, (uint64_t)threads);
        rig_load(&many, ragged, NUM_RAGGED);
        rig_run(&many);
        expect_same_rows(&one, &many, NUM_RAGGED_ROWS);
        rig_close(&many);
    }
    rig_close(&one);
}

static void a_request_alone_has_the_bits_that_it_has_among_neighbours(void **state)
{
    (void)state;
    mla_caps caps = ragged_caps();
    rig all = rig_open(&caps, 3, 1);
    rig alone = rig_open(&caps, 3, 2);
    rig_load(&all, ragged, NUM_RAGGED);
    rig_run(&all);
    int32_t first = 0;
    for (int32_t q = 0; q < NUM_RAGGED; q++) {
        rig_load(&alone, &ragged[q], 1);
        rig_run(&alone);
        for (int32_t i = 0; i < ragged[q].num_rows; i++) {
            assert_true(rig_same_bits(&alone, i, &all, first + i));
        }
        first += ragged[q].num_rows;
    }
    rig_close(&all);
    rig_close(&alone);
}

/* A prefill chunk is as many decodes. */
static void expect_chunk_of_decodes(const mla_caps *caps, const rig_request *request)
{
    mla_caps decode_caps = *caps;
    decode_caps.mode = MLA_DECODE;
    decode_caps.max_rows_per_request = 1;
    decode_caps.max_query_rows = 1;
    decode_caps.max_requests = 1;
    rig chunk = rig_open(caps, 2, 1);
    rig decode = rig_open(&decode_caps, 4, 2);
    rig_load(&chunk, request, 1);
    rig_run(&chunk);
    for (int32_t i = 0; i < request->num_rows; i++) {
        rig_request row = {request->seed, request->length - request->num_rows + i + 1, 1};
        rig_load(&decode, &row, 1);
        rig_run(&decode);
        assert_true(rig_same_bits(&decode, 0, &chunk, i));
    }
    rig_close(&chunk);
    rig_close(&decode);
}

static void a_row_has_the_same_bits_in_a_chunk_and_alone(void **state)
{
    (void)state;
    mla_caps caps = ragged_caps();
    /* across a change of the split length, at 8192 keys */
    expect_chunk_of_decodes(&caps, &(rig_request){11, 8200, 16});
    /* across a cut at 512: of a group's two splits some rows see one, some both */
    caps.window = 7;
    expect_chunk_of_decodes(&caps, &(rig_request){12, 530, 20});
}

static void a_replay_follows_the_contents(void **state)
{
    (void)state;
    mla_caps caps = ragged_caps();
    const rig_request before[] = {{1, 900, 3}, {2, 40, 3}};
    const rig_request after[] = {{3, 20, 2}, {4, 8500, 4}}; /* other starts, too */
    const rig_request empty[] = {{3, 0, 2}, {4, -5, 4}};
    rig recorded = rig_open(&caps, 3, 1);
    rig fresh = rig_open(&caps, 3, 2);
    rig_load(&recorded, before, 2);
    assert_int_equal(mla_record(recorded.binding, &recorded.batch, NULL), MLA_OK);
    const rig_request *const turns[] = {before, empty, after, empty, before};
    for (int i = 0; i < 5; i++) {
        rig_load(&recorded, turns[i], 2);
        rig_replay(&recorded);
        rig_load(&fresh, turns[i], 2);
        rig_run(&fresh);
        expect_same_rows(&recorded, &fresh, 6);
    }
    rig_close(&recorded);
    rig_close(&fresh);
}

/* Lengths go to 0 and come back on the way. */
static void a_thousand_replays_give_the_same_bits(void **state)
{
    (void)state;
    enum { NUM_REPLAYS = 1000, NUM_ROWS = 6 };
    mla_caps caps = ragged_caps();
    const rig_request requests[] = {{1, 900, 3}, {2, 2000, 3}};
    rig recorded = rig_open(&caps, 2, 1);
    rig once = rig_open(&caps, 2, 1);
    int32_t *lens = (int32_t *)(uintptr_t)recorded.buffers.context_lens.data;
    rig_load(&recorded, requests, 2);
    rig_load(&once, requests, 2);
    rig_run(&once);
    assert_int_equal(mla_record(recorded.binding, &recorded.batch, NULL), MLA_OK);
    for (int i = 0; i < test_cases(NUM_REPLAYS); i++) {
        bool is_empty = i % 10 == 9;
        lens[0] = is_empty ? 0 : requests[0].length;
        rig_replay(&recorded);
        for (int32_t row = 0; row < NUM_ROWS; row++) {
            assert_int_equal(rig_same_bits(&recorded, row, &once, row),
                             !is_empty || row >= requests[0].num_rows);
        }
    }
    rig_close(&recorded);
    rig_close(&once);
}

/* The table names as many tokens, so that the plans differ in nothing else. */
static void a_page_size_changes_no_bit(void **state)
{
    (void)state;
    static const int32_t pages[] = {1, 16, 48, 64, 240};
    rig reference = {.context = NULL};
    for (int i = 0; i < 5; i++) {
        mla_caps caps = ragged_caps();
        caps.page_tokens = pages[i];
        caps.table_width = 9120 / pages[i];
        caps.num_pages = (int64_t)caps.table_width * caps.max_requests;
        rig r = rig_open(&caps, 2, 1);
        rig_load(&r, ragged, NUM_RAGGED);
        rig_run(&r);
        if (i == 0) {
            reference = r;
            continue;
        }
        expect_same_rows(&reference, &r, NUM_RAGGED_ROWS);
        rig_close(&r);
    }
    rig_close(&reference);
}

typedef struct lane {
    rig *r;
    const rig *want;
    int num_wrong;
} lane;

static void *run_often(void *arg)
{
    lane *l = arg;
    for (int i = 0; i < 20; i++) {
        rig_run(l->r);
        for (int32_t row = 0; row < l->r->batch.num_query_rows; row++) {
            l->num_wrong += !rig_same_bits(l->r, row, l->want, row);
        }
    }
    return NULL;
}

static void two_threads_use_two_bindings_of_one_plan(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(2, 12, 3000);
    const rig_request requests[] = {{1, 2900, 9}, {2, 77, 3}};
    rig first = rig_open(&caps, 2, 1);
    rig want = rig_open(&caps, 1, 3);
    rig second = first; /* the same context and plan, buffers and a binding of its own */
    second.buffers = rig_buffers(&second.need);
    second.bound = rig_bound(&second.buffers);
    assert_int_equal(mla_bind(second.plan, &second.bound, &second.binding, NULL), MLA_OK);
    rig_load(&first, requests, 2);
    rig_load(&second, requests, 2);
    rig_load(&want, requests, 2);
    rig_run(&want);
    lane lanes[] = {{&first, &want, 0}, {&second, &want, 0}};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_often, &lanes[1]), 0);
    (void)run_often(&lanes[0]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(lanes[0].num_wrong + lanes[1].num_wrong, 0);
    mla_unbind(&second.binding);
    rig_bound_free(&second.bound);
    rig_buffers_free(&second.buffers);
    rig_close(&first);
    rig_close(&want);
}

static void a_run_allocates_nothing(void **state)
{
    (void)state;
    mla_caps caps = rig_extend_caps(2, 12, 3000);
    const rig_request requests[] = {{1, 2900, 9}, {2, 77, 3}};
    rig r = rig_open(&caps, 2, 1);
    rig_load(&r, requests, 2);
    assert_int_equal(mla_record(r.binding, &r.batch, NULL), MLA_OK);
    assert_int_equal(mla_context_freeze(r.context, NULL), MLA_OK);
    mla_memory_report before = MLA_INIT(mla_memory_report);
    mla_memory_report after = MLA_INIT(mla_memory_report);
    assert_int_equal(mla_context_memory(r.context, &before, NULL), MLA_OK);
    rig_load(&r, requests, 2); /* appends */
    rig_run(&r);
    rig_replay(&r);
    assert_int_equal(mla_poll(r.binding, NULL), MLA_OK);
    assert_int_equal(mla_context_memory(r.context, &after, NULL), MLA_OK);
    assert_memory_equal(&before, &after, sizeof before);
    rig_close(&r);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_attention),
        cmocka_unit_test(pages_and_threads_change_no_bit),
        cmocka_unit_test(a_page_size_changes_no_bit),
        cmocka_unit_test(a_request_alone_has_the_bits_that_it_has_among_neighbours),
        cmocka_unit_test(a_replay_follows_the_contents),
        cmocka_unit_test(a_thousand_replays_give_the_same_bits),
        cmocka_unit_test(two_threads_use_two_bindings_of_one_plan),
        cmocka_unit_test(a_run_allocates_nothing),
    };
    const struct CMUnitTest across_plans[] = {
        cmocka_unit_test(a_row_has_the_same_bits_in_a_chunk_and_alone),
    };
    int num_failed = rig_is_on_gpu ? 0 : cmocka_run_group_tests(across_plans, NULL, NULL);
    return num_failed + cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return gpu_suite("invariance", run_suite);
}
