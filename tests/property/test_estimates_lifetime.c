/* What a session says that preparing takes, for caps drawn at random, is what it takes: a limit
 * of just that lets it through, and one byte less does not. On a GPU the sizes of compiled
 * kernels are not known before: there what they take is a bound, and operands are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/gpu.h"
#include "support/must.h"
#include "support/rig.h"

enum {
    HOST = MLA_SPACE_HOST,
    DEVICE = MLA_SPACE_DEVICE,
    NUM_DRAWS = 150,
    NUM_GPU_DRAWS = 30,
    MOST_REQUESTS = 6
};

static mla_caps draw_caps(rng *random)
{
    static const mla_dtype queries[] = {MLA_BF16, MLA_E4M3, MLA_F32};
    mla_caps caps = rig_caps();
    caps.mode = (mla_mode)rng_between(random, MLA_DECODE, MLA_EXTEND);
    int64_t num_f32 = rig_is_on_gpu ? 0 : 1; /* which is the last of both */
    caps.kv_format =
        (mla_kv_format)rng_between(random, MLA_KV_BF16, MLA_KV_FP8_G128 + num_f32);
    caps.query_dtype = queries[rng_between(random, 0, 1 + num_f32)];
    caps.output_dtype = rng_between(random, 0, 1) ? MLA_BF16 : MLA_F32;
    caps.num_heads = (int32_t)rng_between(random, 1, 140);
    caps.latent_dim = 128 * (int32_t)rng_between(random, 1, 4);
    caps.rope_dim = 16 * (int32_t)rng_between(random, 0, 4);
    caps.page_tokens =
        rng_between(random, 0, 2) ? 16 * (int32_t)rng_between(random, 1, 9) : 1;
    caps.max_requests = (int32_t)rng_between(random, 1, 9);
    caps.max_query_rows = (int32_t)rng_between(random, 1, 30);
    caps.max_rows_per_request =
        caps.mode == MLA_DECODE ? 1 : (int32_t)rng_between(random, 1, caps.max_query_rows);
    caps.max_context_tokens = rng_between(random, 1, 9000);
    caps.table_width = 9000 / caps.page_tokens + 1;
    caps.num_pages = rng_between(random, 1, 50);
    caps.window = (int32_t)rng_between(random, 0, 3) * 100;
    return caps;
}

typedef struct job {
    mla_context *context;
    mla_session *session;
} job;

static job start(const mla_caps *caps, int num, int32_t num_threads, uint64_t limit_bytes)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_context_options options = MLA_INIT(mla_context_options);
    mla_session_options of_session = MLA_INIT(mla_session_options);
    options.backend = rig_backend;
    options.num_threads = num_threads;
    options.memory_limit_bytes = limit_bytes;
    job j = {NULL, NULL};
    must(mla_context_create(&options, &j.context, &err), &err);
    of_session.cache_dir = gpu_cache();
    must(mla_session_open(j.context, &of_session, &j.session, &err), &err);
    for (int i = 0; i < num; i++) {
        mla_ticket ticket;
        must(mla_session_add(j.session, &caps[i], NULL, &ticket, &err), &err);
    }
    return j;
}

static void end(job *j)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_session_close(&j->session);
    must(mla_context_destroy(&j->context, &err), &err);
}

static mla_memory_report books_of(const job *j)
{
    mla_memory_report books = MLA_INIT(mla_memory_report);
    mla_error err = {MLA_OK, 0, NULL, ""};
    must(mla_context_memory(j->context, &books, &err), &err);
    return books;
}

static mla_memory_report told_by(const job *j)
{
    mla_memory_report told = MLA_INIT(mla_memory_report);
    mla_error err = {MLA_OK, 0, NULL, ""};
    must(mla_session_estimate(j->session, &told, &err), &err);
    return told;
}

/* With MLA_RETAIN_PRIMING there are some, and no peak is the estimate's. */
static void expect_no_transients(const mla_memory_report *seen)
{
    uint64_t bytes = seen->cell[HOST][MLA_FOR_SESSION].now_bytes +
                     seen->cell[DEVICE][MLA_FOR_SESSION].now_bytes;
    if (bytes != 0) {
        fail_msg("class session holds %llu bytes after prepare", (unsigned long long)bytes);
    }
}

/* Returns what a limit must hold: what is there before, what stays and the transient peak. */
static uint64_t check_estimate(const mla_caps *caps, int num, int32_t num_threads)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    job j = start(caps, num, num_threads, 0);
    mla_memory_report told = told_by(&j);
    uint64_t before = books_of(&j).cell[HOST][MLA_FOR_CONTEXT].now_bytes;
    must(mla_session_prepare(j.session, &err), &err);
    mla_memory_report seen = books_of(&j);
    uint64_t peak = told.cell[HOST][MLA_FOR_SESSION].peak_bytes;
    uint64_t stays = told.cell[HOST][MLA_FOR_PLAN].now_bytes;
    assert_true(peak > 0 && stays > 0);
    expect_no_transients(&seen);
    assert_int_equal(seen.cell[HOST][MLA_FOR_SESSION].peak_bytes, peak);
    assert_int_equal(seen.cell[HOST][MLA_FOR_PLAN].now_bytes, stays);
    assert_int_equal(seen.cell[HOST][MLA_FOR_PLAN].peak_bytes, stays);
    assert_int_equal(seen.cell[HOST][MLA_FOR_CONTEXT].now_bytes, before);
    told = told_by(&j); /* nothing is left to prepare */
    assert_int_equal(told.cell[HOST][MLA_FOR_SESSION].peak_bytes, 0);
    assert_int_equal(told.caller_bytes[HOST], 0);
    end(&j);
    return before + peak + stays;
}

static void expect_fit(const mla_caps *caps, int num, int32_t num_threads, uint64_t limit)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    job j = start(caps, num, num_threads, limit);
    must(mla_session_prepare(j.session, &err), &err);
    end(&j);
}

static void expect_no_fit(const mla_caps *caps, int32_t num_threads, uint64_t limit)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    job j = start(caps, 1, num_threads, limit);
    uint64_t before = books_of(&j).cell[HOST][MLA_FOR_CONTEXT].now_bytes;
    assert_int_equal(mla_session_prepare(j.session, &err), MLA_ERR_NO_MEMORY);
    assert_true(err.message[0] != '\0');
    mla_memory_report seen = books_of(&j);
    expect_no_transients(&seen);
    assert_int_equal(seen.cell[HOST][MLA_FOR_PLAN].now_bytes, 0);
    assert_int_equal(seen.cell[HOST][MLA_FOR_CONTEXT].now_bytes, before);
    end(&j);
}

static void a_limit_at_the_estimate_is_enough_and_one_byte_less_is_not(void **state)
{
    (void)state;
    rng random = rng_start("a_limit_at_the_estimate_is_enough_and_one_byte_less_is_not");
    for (int i = 0; i < NUM_DRAWS; i++) {
        mla_caps caps = draw_caps(&random);
        int32_t num_threads = (int32_t)rng_between(&random, 1, 3);
        uint64_t whole = check_estimate(&caps, 1, num_threads);
        expect_fit(&caps, 1, num_threads, whole);
        expect_no_fit(&caps, num_threads, whole - 1);
    }
}

static void the_estimate_of_many_requests_is_exact(void **state)
{
    (void)state;
    rng random = rng_start("the_estimate_of_many_requests_is_exact");
    for (int i = 0; i < NUM_DRAWS / 3; i++) {
        mla_caps caps[MOST_REQUESTS];
        int num = (int)rng_between(&random, 2, MOST_REQUESTS);
        for (int r = 0; r < num; r++) {
            caps[r] = draw_caps(&random);
        }
        expect_fit(caps, num, 2, check_estimate(caps, num, 2));
    }
}

/* Pools of nearly 2^63 bytes, more than two of which no 64 bits can count. */
static void an_estimate_beyond_counting_stays_at_the_most(void **state)
{
    (void)state;
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_caps caps = rig_caps();
    caps.page_stride_bytes = INT64_C(1) << 32;
    caps.num_pages = INT32_MAX;
    job j = start(&caps, 1, 1, 0);
    uint64_t last = told_by(&j).caller_bytes[HOST];
    assert_true(last > (UINT64_C(1) << 62));
    for (int i = 1; i < 5; i++) {
        mla_ticket ticket;
        caps.window = i;
        must(mla_session_add(j.session, &caps, NULL, &ticket, &err), &err);
        uint64_t now = told_by(&j).caller_bytes[HOST];
        assert_true(now >= last);
        last = now;
    }
    assert_true(last == UINT64_MAX);
    end(&j);
}

/* The largest query and output that memory could hold: their sum is beyond it. */
static void operands_beyond_counting_stay_at_the_most(void **state)
{
    (void)state;
    mla_caps caps = rig_caps();
    caps.rope_dim = 0;
    caps.latent_dim = 1 << 14;
    caps.num_heads = 1 << 16;
    caps.max_requests = INT32_MAX;
    caps.max_query_rows = caps.max_requests;
    job j = start(&caps, 1, 1, 0);
    mla_memory_report told = told_by(&j);
    assert_true(told.cell[HOST][MLA_FOR_SESSION].peak_bytes == UINT64_MAX);
    assert_int_equal(mla_session_prepare(j.session, NULL), MLA_ERR_NO_MEMORY);
    end(&j);
}

/* On a GPU: what a limit must hold, which counts for each space. */
static uint64_t check_bound(const mla_caps *caps, uint64_t *operand_bytes)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    job j = start(caps, 1, 1, 0);
    mla_memory_report told = told_by(&j);
    uint64_t before = books_of(&j).cell[HOST][MLA_FOR_CONTEXT].now_bytes;
    must(mla_session_prepare(j.session, &err), &err);
    mla_memory_report seen = books_of(&j);
    uint64_t whole = 0;
    expect_no_transients(&seen);
    for (int space = HOST; space <= DEVICE; space++) {
        const mla_memory_cell *a = told.cell[space];
        const mla_memory_cell *b = seen.cell[space];
        uint64_t own = space == HOST ? before : 0;
        uint64_t need = own + a[MLA_FOR_SESSION].peak_bytes + a[MLA_FOR_PLAN].now_bytes;
        assert_true(b[MLA_FOR_SESSION].peak_bytes <= a[MLA_FOR_SESSION].peak_bytes);
        assert_true(b[MLA_FOR_PLAN].now_bytes <= a[MLA_FOR_PLAN].now_bytes);
        whole = need > whole ? need : whole;
    }
    *operand_bytes = told.cell[DEVICE][MLA_FOR_SESSION].peak_bytes;
    assert_true(*operand_bytes > 0);
    assert_int_equal(seen.cell[DEVICE][MLA_FOR_SESSION].peak_bytes, *operand_bytes);
    assert_int_equal(seen.cell[HOST][MLA_FOR_PLAN].now_bytes,
                     told.cell[HOST][MLA_FOR_PLAN].now_bytes);
    end(&j);
    return whole;
}

static void on_a_gpu_a_limit_at_the_estimate_is_enough(void **state)
{
    (void)state;
    const uint64_t least_limit = 1 << 20; /* under which no context opens */
    int num_refused = 0;
    rng random = rng_start("on_a_gpu_a_limit_at_the_estimate_is_enough");
    mla_caps caps[NUM_GPU_DRAWS];
    int num = test_cases(NUM_GPU_DRAWS);
    for (int i = 0; i < num; i++) {
        caps[i] = draw_caps(&random);
    }
    gpu_warm(caps, num);
    for (int i = 0; i < num; i++) {
        uint64_t operand_bytes;
        expect_fit(&caps[i], 1, 1, check_bound(&caps[i], &operand_bytes));
        if (operand_bytes > least_limit) {
            expect_no_fit(&caps[i], 1, operand_bytes - 1);
            num_refused++;
        }
    }
    assert_true(num_refused > 0);
}

static int run_suite(void)
{
    const struct CMUnitTest on_cpu[] = {
        cmocka_unit_test(a_limit_at_the_estimate_is_enough_and_one_byte_less_is_not),
        cmocka_unit_test(the_estimate_of_many_requests_is_exact),
        cmocka_unit_test(an_estimate_beyond_counting_stays_at_the_most),
        cmocka_unit_test(operands_beyond_counting_stay_at_the_most),
    };
    const struct CMUnitTest on_gpu[] = {
        cmocka_unit_test(on_a_gpu_a_limit_at_the_estimate_is_enough),
    };
    return rig_is_on_gpu ? cmocka_run_group_tests(on_gpu, NULL, NULL)
                         : cmocka_run_group_tests(on_cpu, NULL, NULL);
}

int main(void)
{
    return gpu_suite("estimates", run_suite);
}
