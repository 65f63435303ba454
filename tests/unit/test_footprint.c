/* A rank's memory: classes by hand, the order of refusals, the largest concurrency, and that a
 * plan asks for what was counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "attention/session.h"
#include "model/footprint.h"
#include "model/model.h"
#include "support/books.h"
#include "support/must.h"

#define SMALL_CONFIG                                                                       \
    "\"config\": {\"model_type\": \"deepseek_v3\", \"vocab_size\": 100, "                  \
    "\"hidden_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "          \
    "\"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 32, "           \
    "\"v_head_dim\": 32, \"intermediate_size\": 128, \"num_nextn_predict_layers\": 1}"
#define CPU                                                                                \
    "\"device\": {\"name\": \"a CPU\", \"backend\": \"cpu\", \"threads\": 2, "             \
    "\"memory_bytes\": %llu}"
#define SERVING                                                                            \
    "\"serving\": {\"kv_format\": \"bf16\", \"max_context_tokens\": 200, "                 \
    "\"request_tokens\": 100, \"concurrency\": 3, \"page_tokens\": 16%s}"

enum { TEXT = 4096 };
#define HUGE (1ULL << 40)

typedef struct desk {
    mla_context books;
    profile profile;
} desk;

/* serving: more of that section; sections: more of them; both begin with a comma. */
static void open_desk(desk *out, unsigned long long memory, const char *serving,
                      const char *sections)
{
    static char text[TEXT];
    mla_error err = {0};
    int bytes = snprintf(text, sizeof text,
                         "{\"name\": \"small\", " SMALL_CONFIG ", " CPU ", " SERVING "%s}",
                         memory, serving, sections);
    assert_in_range(bytes, 1, TEXT - 1);
    out->books = books_open(NULL);
    if (profile_parse(&out->books.ledger, "small.json", text, (size_t)bytes, &out->profile,
                      &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
}

static void close_desk(desk *opened)
{
    profile_close(&opened->profile);
    assert_int_equal(books_now(&opened->books), 0);
}

static footprint print_of(const desk *opened, int32_t concurrency)
{
    footprint print;
    mla_error err = {0};
    if (footprint_of(&opened->profile, concurrency, &print, &err) != MLA_OK) {
        fail_msg("%s", err.message);
    }
    return print;
}

static uint64_t part_of(const footprint *print, mla_purpose purpose, const char *name)
{
    for (int i = 0; i < FOOTPRINT_MAX_PARTS && print->classes[purpose].parts[i].name; i++) {
        if (strcmp(print->classes[purpose].parts[i].name, name) == 0) {
            return print->classes[purpose].parts[i].bytes;
        }
    }
    fail_msg("no part %s", name);
    return 0;
}

/* 100 tokens are 7 pages of 16 rows of 96 x 2 bytes in 2 layers. */
static void requests_take_whole_pages(void **state)
{
    (void)state;
    desk opened;
    open_desk(&opened, HUGE, "", "");
    footprint print = print_of(&opened, 3);
    assert_int_equal(print.tokens.row_bytes, 192);
    assert_int_equal(print.tokens.request_pages, 7);
    assert_int_equal(print.tokens.request_bytes, 7 * 16 * 192 * 2);
    assert_int_equal(print.classes[MLA_FOR_KV].now_bytes, 3 * 7 * 16 * 192 * 2);
    assert_int_equal(print.tokens.pool_tokens, 3 * 7 * 16);
    assert_true(print.tokens.ideal_bytes == 384.0);
    assert_true(print.tokens.effective_bytes == 384.0 * 112 / 100);
    assert_int_equal(print.tokens.ideal_per_gib, (1 << 30) / 384);
    close_desk(&opened);
}

/* Of 100 tokens rank 0 of 4 with runs of 16 has 16 and 16: two pages. */
static void context_ranks_keep_their_share(void **state)
{
    (void)state;
    desk opened;
    open_desk(&opened, HUGE, "",
              ", \"ranks\": {\"tensor\": 4, \"context\": 4, \"interleave\": 16}");
    footprint print = print_of(&opened, 3);
    assert_int_equal(print.tokens.local_tokens, 32);
    assert_int_equal(print.tokens.request_pages, 2);
    assert_int_equal(print.tokens.pool_tokens, 3 * 2 * 16 * 4);
    assert_true(print.tokens.ideal_bytes == 96.0);
    close_desk(&opened);
}

/* align256(rows x heads x width x 2) + align256(rows x heads x 4), twice, and the signals. */
static void a_channel_has_two_slots_and_its_signals(void **state)
{
    (void)state;
    desk opened;
    open_desk(
        &opened, HUGE, "",
        ", \"ranks\": {\"tensor\": 4, \"context\": 2}, \"comm\": {\"communicators\": 2, "
        "\"communicator_bytes\": 1000, \"channels\": 1, \"signal_bytes\": 512}");
    footprint print = print_of(&opened, 3);
    assert_int_equal(part_of(&print, MLA_FOR_COMM, "communicators"), 2000);
    /* 3 rows x 2 heads: 1152 -> 1280 and 24 -> 256 */
    assert_int_equal(part_of(&print, MLA_FOR_COMM, "channel slabs"),
                     2 * (1280 + 256) + 512);
    close_desk(&opened);
}

static void a_full_step_is_captured_beside_the_listed_sizes(void **state)
{
    (void)state;
    desk opened;
    open_desk(&opened, HUGE, "",
              ", \"graphs\": {\"rows\": [2, 4, 8], \"bytes_each\": 1000, "
              "\"bytes_per_row\": 10}");
    footprint print = print_of(&opened, 3);
    assert_int_equal(print.classes[MLA_FOR_GRAPH].now_bytes, 2 * 1000 + (2 + 3) * 10);
    print = print_of(&opened, 4);
    assert_int_equal(print.classes[MLA_FOR_GRAPH].now_bytes, 2 * 1000 + (2 + 4) * 10);
    print = print_of(&opened, 100);
    assert_int_equal(print.classes[MLA_FOR_GRAPH].now_bytes,
                     4 * 1000 + (2 + 4 + 8 + 100) * 10);
    close_desk(&opened);
}

static void drafters_have_rows_of_their_own(void **state)
{
    (void)state;
    desk opened;
    open_desk(
        &opened, HUGE, "",
        ", \"speculation\": {\"kind\": \"model\", \"draft_tokens\": 3, "
        "\"weights_bytes\": 5000, \"layers\": 2, \"latent_dim\": 64, \"rope_dim\": 32, "
        "\"kv_format\": \"fp8\", \"window_tokens\": 40}");
    footprint print = print_of(&opened, 3);
    assert_int_equal(print.step_rows, 12);
    assert_int_equal(part_of(&print, MLA_FOR_DRAFTER, "weights"), 5000);
    assert_int_equal(part_of(&print, MLA_FOR_DRAFTER, "rows"), 3 * 3 * 16 * 96 * 2);
    close_desk(&opened);
    open_desk(&opened, HUGE, "",
              ", \"speculation\": {\"kind\": \"mtp\", \"draft_tokens\": 1}");
    print = print_of(&opened, 3);
    assert_int_equal(part_of(&print, MLA_FOR_DRAFTER, "rows"), 3 * 7 * 16 * 192);
    assert_int_equal(part_of(&print, MLA_FOR_DRAFTER, "weights"), print.weights.mtp_bytes);
    close_desk(&opened);
}

/* One byte less than what n requests need admits n - 1, and says one byte. */
static void the_largest_concurrency_is_the_boundary(void **state)
{
    (void)state;
    desk opened;
    for (int32_t n = 1; n <= 40; n += 13) {
        footprint_verdict verdict;
        open_desk(&opened, HUGE, "", "");
        uint64_t total = print_of(&opened, n).now_bytes;
        opened.profile.is.memory_bytes = (int64_t)total;
        footprint print = print_of(&opened, n);
        footprint_admit(&opened.profile, &print, &verdict);
        assert_true(verdict.fits);
        assert_int_equal(verdict.largest_concurrency, n);
        assert_int_equal(verdict.total_deficit_bytes, 0);
        opened.profile.is.memory_bytes = (int64_t)total - 1;
        footprint_admit(&opened.profile, &print, &verdict);
        assert_false(verdict.fits);
        assert_int_equal(verdict.largest_concurrency, n - 1);
        assert_int_equal(verdict.purpose, MLA_FOR_ACTIVATIONS); /* the last that it has */
        assert_int_equal(verdict.deficit_bytes, 1);
        assert_int_equal(verdict.total_deficit_bytes, 1);
        assert_int_equal(verdict.required_bytes - verdict.available_bytes, 1);
        close_desk(&opened);
    }
}

static void a_fixed_pool_is_taken_whole_and_holds_no_more(void **state)
{
    (void)state;
    desk opened;
    footprint_verdict verdict;
    enum { REQUEST = 7 * 16 * 192 * 2, POOL = 4 * REQUEST + 100 };
    static char serving[64];
    (void)snprintf(serving, sizeof serving, ", \"kv_bytes\": %d", POOL);
    open_desk(&opened, HUGE, serving, "");
    footprint print = print_of(&opened, 2);
    assert_int_equal(print.classes[MLA_FOR_KV].now_bytes, POOL);
    assert_int_equal(print.tokens.pool_pages, 28);
    footprint_admit(&opened.profile, &print, &verdict);
    assert_true(verdict.fits);
    assert_int_equal(verdict.largest_concurrency, 4);
    assert_true(verdict.largest_without_fixed > 4);
    print = print_of(&opened, 5);
    footprint_admit(&opened.profile, &print, &verdict);
    assert_false(verdict.fits);
    assert_true(verdict.is_pool_fixed);
    assert_int_equal(verdict.purpose, MLA_FOR_KV);
    assert_int_equal(verdict.required_bytes, 5 * REQUEST);
    assert_int_equal(verdict.available_bytes, POOL);
    assert_int_equal(verdict.deficit_bytes, 5 * REQUEST - POOL);
    assert_int_equal(verdict.total_deficit_bytes, 0);
    close_desk(&opened);
}

static mla_context *portable_context(void)
{
    mla_context_options options = MLA_INIT(mla_context_options);
    mla_context *context = NULL;
    mla_error err = {0};
    options.backend = MLA_BACKEND_CPU;
    options.num_threads = 2;
    options.isa_mask = MLA_ISA_C;
    must(mla_context_create(&options, &context, &err), &err);
    return context;
}

static void a_plan_and_its_session_ask_for_what_was_counted(void **state)
{
    (void)state;
    desk opened;
    open_desk(&opened, HUGE, "",
              ", \"speculation\": {\"kind\": \"ngram\", \"draft_tokens\": 3}");
    footprint print = print_of(&opened, 5);
    mla_caps caps = MLA_INIT(mla_caps);
    caps.mode = MLA_VERIFY;
    caps.kv_format = MLA_KV_BF16;
    caps.query_dtype = MLA_F32;
    caps.output_dtype = MLA_F32;
    caps.num_heads = 4;
    caps.latent_dim = 64;
    caps.rope_dim = 32;
    caps.page_tokens = 16;
    caps.causal = 1;
    caps.softmax_scale = 0.125F;
    caps.max_requests = 5;
    caps.max_query_rows = 20;
    caps.max_rows_per_request = 4;
    caps.max_context_tokens = 200;
    caps.table_width = 13;
    caps.num_pages = 35;
    mla_context *context = portable_context();
    mla_session *session = NULL;
    mla_plan *plan = NULL;
    mla_ticket ticket;
    mla_requirements need = MLA_INIT(mla_requirements);
    mla_memory_report said = MLA_INIT(mla_memory_report);
    mla_error err = {0};
    must(mla_session_open(context, NULL, &session, &err), &err);
    must(mla_session_add(session, &caps, NULL, &ticket, &err), &err);
    must(mla_session_estimate(session, &said, &err), &err);
    must(mla_session_prepare(session, &err), &err);
    must(mla_session_publish(session, ticket, &plan, &err), &err);
    must(mla_plan_requirements(plan, &need, &err), &err);
    assert_int_equal(part_of(&print, MLA_FOR_ACTIVATIONS, "attention workspace"),
                     need.workspace.bytes);
    assert_int_equal(print.classes[MLA_FOR_KV].now_bytes, 2 * need.kv_pool.bytes);
    assert_int_equal(print.classes[MLA_FOR_SESSION].peak_bytes,
                     said.cell[MLA_SPACE_HOST][MLA_FOR_SESSION].peak_bytes);
    mla_plan_release(&plan);
    mla_session_close(&session);
    must(mla_context_destroy(&context, &err), &err);
    close_desk(&opened);
}

static void open_demo(desk *out)
{
    static char config[TEXT];
    static char text[2 * TEXT];
    mla_error err = {0};
    FILE *file = fopen(TEST_MODELS "/demo/config.json", "rb");
    assert_non_null(file);
    size_t got = fread(config, 1, sizeof config - 1, file);
    config[got] = 0;
    assert_int_equal(fclose(file), 0);
    int bytes = snprintf(text, sizeof text,
                         "{\"name\": \"demo\", \"config\": %s, " CPU
                         ", \"serving\": {\"kv_format\": "
                         "\"fp8\", \"max_context_tokens\": 1000, \"concurrency\": 5}, "
                         "\"speculation\": {\"kind\": \"ngram\", \"draft_tokens\": 3}}",
                         config, HUGE);
    assert_in_range(bytes, 1, sizeof text - 1);
    out->books = books_open(NULL);
    must(profile_parse(&out->books.ledger, "demo.json", text, (size_t)bytes, &out->profile,
                       &err),
         &err);
}

static void a_prepared_model_holds_what_was_counted(void **state)
{
    (void)state;
    desk opened;
    model *loaded = NULL;
    mla_error err = {0};
    const model_limits limits = {.kv_format = MLA_KV_FP8,
                                 .max_sequences = 5,
                                 .max_step_rows = 4,
                                 .max_context_tokens = 1000,
                                 .num_pages = 5 * 16};
    mla_memory_report holds = MLA_INIT(mla_memory_report);
    open_demo(&opened);
    footprint print = print_of(&opened, 5);
    mla_context *context = portable_context();
    must(model_load(context, TEST_MODELS "/demo", &loaded, &err), &err);
    must(model_prepare(loaded, &limits, &err), &err);
    must(mla_context_memory(context, &holds, &err), &err);
    const mla_memory_cell *host = holds.cell[MLA_SPACE_HOST];
    assert_int_equal(part_of(&print, MLA_FOR_ACTIVATIONS, "model arrays") +
                         part_of(&print, MLA_FOR_ACTIVATIONS, "attention workspace"),
                     host[MLA_FOR_ACTIVATIONS].now_bytes);
    assert_int_equal(print.classes[MLA_FOR_KV].now_bytes, host[MLA_FOR_KV].now_bytes);
    assert_int_equal(print.classes[MLA_FOR_SESSION].peak_bytes,
                     host[MLA_FOR_SESSION].peak_bytes);
    model_unload(&loaded);
    must(mla_context_destroy(&context, &err), &err);
    close_desk(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_take_whole_pages),
        cmocka_unit_test(context_ranks_keep_their_share),
        cmocka_unit_test(a_channel_has_two_slots_and_its_signals),
        cmocka_unit_test(a_full_step_is_captured_beside_the_listed_sizes),
        cmocka_unit_test(drafters_have_rows_of_their_own),
        cmocka_unit_test(the_largest_concurrency_is_the_boundary),
        cmocka_unit_test(a_fixed_pool_is_taken_whole_and_holds_no_more),
        cmocka_unit_test(a_plan_and_its_session_ask_for_what_was_counted),
        cmocka_unit_test(a_prepared_model_holds_what_was_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
