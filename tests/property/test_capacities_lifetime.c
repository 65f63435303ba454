/* Plans of five capacities at once, 96 heads and pages of 64: what preparing them took comes
 * back, bf16 and fp8. On a GPU the driver's own count says so, too, before, while the plans are
 * held and after; and how long it took with an empty and with a full cache of kernels is
 * printed. A build with MLA_RETAIN_PRIMING must fail every test here and name the bytes.
 *
 * The driver's rule: once a first round has made what the driver makes once, a round's plans
 * take at most what their modules are booked with, and GRANULES of the driver's granules (it
 * hands out 2 MiB at a time, and an H200's driver took two for fifteen modules of half a MB);
 * and when the plans are released, all of it comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "attention/context.h"
#include "base/clock.h"
#include "support/device_memory.h"
#include "support/folder.h"
#include "support/gpu.h"
#include "support/must.h"
#include "support/rig.h"

enum { NUM = 5, GRANULES = 4, NUM_WORKERS = 4 };
static const int32_t capacity[NUM] = {1, 4, 16, 64, 120};
static const size_t granule_bytes = (size_t)2 << 20;

static mla_caps caps_of(mla_kv_format format, int32_t max_requests)
{
    mla_caps caps = rig_caps();
    caps.kv_format = format;
    caps.query_dtype = format == MLA_KV_FP8 ? MLA_E4M3 : MLA_BF16;
    caps.output_dtype = MLA_BF16;
    caps.num_heads = 96;
    caps.latent_dim = 512;
    caps.rope_dim = 64;
    caps.page_tokens = 64;
    caps.max_requests = max_requests;
    caps.max_query_rows = max_requests;
    caps.max_context_tokens = 131072;
    caps.table_width = 2048;
    caps.num_pages = 100000;
    return caps;
}

static uint64_t bytes_of(const mla_context *context, mla_purpose purpose)
{
    uint64_t bytes = 0;
    for (int space = 0; space < MLA_NUM_SPACES; space++) {
        bytes += mlai_ledger_now(&context->ledger, (mla_space)space, purpose);
    }
    return bytes;
}

static void expect_no_transients(const mla_context *context, const char *when)
{
    uint64_t bytes = bytes_of(context, MLA_FOR_SESSION);
    if (bytes != 0) {
        fail_msg("class session holds %llu bytes %s", (unsigned long long)bytes, when);
    }
}

static size_t free_bytes(void)
{
    return rig_is_on_gpu ? memory_free_bytes() : 0;
}

static void say(const mla_context *context, const char *when)
{
    print_message("%-10s session %llu, plans %llu bytes", when,
                  (unsigned long long)bytes_of(context, MLA_FOR_SESSION),
                  (unsigned long long)bytes_of(context, MLA_FOR_PLAN));
    if (rig_is_on_gpu) {
        print_message("; the driver has %zu bytes free", free_bytes());
    }
    print_message("\n");
}

static void prepare(mla_context *context, mla_kv_format format, const char *cache,
                    mla_plan *plan[NUM])
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_session *session = NULL;
    mla_ticket ticket[NUM];
    mla_session_options options = MLA_INIT(mla_session_options);
    options.cache_dir = cache;
    options.compile_workers = NUM_WORKERS;
    must(mla_session_open(context, &options, &session, &err), &err);
    for (int i = 0; i < NUM; i++) {
        mla_caps caps = caps_of(format, capacity[i]);
        must(mla_session_add(session, &caps, NULL, &ticket[i], &err), &err);
    }
    int64_t start_ns = mlai_now_ns();
    must(mla_session_prepare(session, &err), &err);
    print_message("prepared in %.1f ms\n", (double)(mlai_now_ns() - start_ns) / 1e6);
    for (int i = 0; i < NUM; i++) {
        must(mla_session_publish(session, ticket[i], &plan[i], &err), &err);
    }
    expect_no_transients(context, "after publish");
    mla_session_close(&session);
}

/* What the driver gave and got back. */
typedef struct passage {
    size_t before, held, after; /* bytes free */
    uint64_t module_bytes;      /* booked while the plans were held */
} passage;

static passage pass(mla_kv_format format, const char *cache, const char *name)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_plan *plan[NUM] = {NULL};
    mla_context *context = rig_context(2, NULL);
    print_message("%s, %s kernel cache\n", format == MLA_KV_FP8 ? "fp8" : "bf16", name);
    passage seen = {.before = free_bytes()};
    say(context, "before");
    prepare(context, format, cache, plan);
    seen.held = free_bytes();
    seen.module_bytes = mlai_ledger_now(&context->ledger, MLA_SPACE_DEVICE, MLA_FOR_PLAN);
    say(context, "published");
    expect_no_transients(context, "while the plans are held");
    for (int i = 0; i < NUM; i++) {
        mla_plan_release(&plan[i]);
    }
    seen.after = free_bytes();
    say(context, "released");
    assert_int_equal(bytes_of(context, MLA_FOR_PLAN), 0);
    must(mla_context_destroy(&context, &err), &err);
    return seen;
}

static void expect_nothing_left(mla_kv_format format)
{
    char cache[] = "/tmp/mla-lifetime-XXXXXX";
    folder_make(cache);
    (void)pass(format, cache, "empty");
    passage seen = pass(format, cache, "full");
    folder_drop(cache);
    size_t explained = (size_t)seen.module_bytes + GRANULES * granule_bytes;
    if (seen.before > seen.held + explained) {
        fail_msg("the driver gave %zu bytes for modules of %llu", seen.before - seen.held,
                 (unsigned long long)seen.module_bytes);
    }
    if (seen.after != seen.before) {
        fail_msg("%zd bytes of device memory did not come back",
                 (ptrdiff_t)(seen.before - seen.after));
    }
}

static void plans_of_bf16_keep_nothing_but_their_launchers(void **state)
{
    (void)state;
    expect_nothing_left(MLA_KV_BF16);
}

static void plans_of_fp8_keep_nothing_but_their_launchers(void **state)
{
    (void)state;
    expect_nothing_left(MLA_KV_FP8);
}

static int run_suite(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_bf16_keep_nothing_but_their_launchers),
        cmocka_unit_test(plans_of_fp8_keep_nothing_but_their_launchers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    /* The driver has a cache of its own, which NVRTC uses: empty is to mean empty. */
    (void)setenv("CUDA_CACHE_DISABLE", "1", 1);
    return gpu_suite("capacities", run_suite);
}
