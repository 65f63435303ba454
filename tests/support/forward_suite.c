/* forward_suite.c - the forward pass to the bit: see forward_suite.h. */
#include "support/forward_suite.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu.h"
#include "model/state.h"
#include "support/demo.h"
#include "support/levels.h"
#include "support/random.h"

enum { PROMPT = 500, SEQUENCES = 5, PAGES_EACH = 8, PAGES = 64 };

static const char *dir;   /* of the model under test */
static uint32_t isa_mask; /* of the level under test */
static size_t vocab;
static int num_formats; /* the last, fp8_g128, wants latent widths of whole groups */
static int32_t prompt[PROMPT];
static float *first_logits, *second_logits; /* [PROMPT][vocab] */

static int start(void **state)
{
    (void)state;
    rng random = rng_start("forward");
    demo loaded = demo_load(&(demo_options){.dir = dir, .threads = 1});
    vocab = (size_t)model_config_of(loaded.model)->vocab_size;
    num_formats = model_config_of(loaded.model)->kv_lora_rank % 128 == 0 ? 4 : 3;
    demo_close(&loaded);
    first_logits = calloc(PROMPT * vocab, sizeof(float));
    second_logits = calloc(PROMPT * vocab, sizeof(float));
    assert_true(first_logits && second_logits);
    for (int32_t i = 0; i < PROMPT; i++) {
        prompt[i] = (int32_t)rng_between(&random, 3, (int64_t)vocab - 1);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(first_logits);
    free(second_logits);
    return 0;
}

enum { STEP_ROWS = 5 };
static const int32_t feature_layers[1] = {
    -1}; /* the tiny model has no other before its last */

static demo prepared(int32_t threads, mla_kv_format kv)
{
    demo opened =
        demo_load(&(demo_options){.dir = dir, .threads = threads, .isa_mask = isa_mask});
    mla_error err = {0};
    model_limits limits = {.kv_format = kv,
                           .max_sequences = SEQUENCES,
                           .max_step_rows = STEP_ROWS,
                           .feature_layers = feature_layers,
                           .num_feature_layers = 1,
                           .max_context_tokens = PAGES_EACH * MODEL_PAGE_TOKENS,
                           .num_pages = PAGES};
    must(model_prepare(opened.model, &limits, &err), &err);
    return opened;
}

/* Pages first, first + step, ... of the pool. */
static void make_table(int32_t first, int32_t step, int32_t table[PAGES_EACH])
{
    for (int32_t i = 0; i < PAGES_EACH; i++) {
        table[i] = (first + i * step) % PAGES;
        table[i] += table[i] < 0 ? PAGES : 0;
    }
}

/* pieces: lengths that add up to num; none crosses a multiple of 256. */
static void prefill(const demo *opened, const int32_t *table, const int32_t *pieces,
                    int32_t num, float *logits)
{
    mla_error err = {0};
    for (int32_t first = 0; first < num; first += *pieces++) {
        model_chunk chunk = {.tokens = prompt + first,
                             .num_tokens = *pieces,
                             .first_position = first,
                             .block_table = table,
                             .logits = logits + (size_t)first * vocab,
                             .is_every_row = true};
        must(model_prefill(opened->model, &chunk, &err), &err);
    }
}

static void check_same_bits(int32_t num_rows)
{
    for (int32_t row = 0; row < num_rows; row++) {
        size_t at = (size_t)row * vocab;
        if (memcmp(first_logits + at, second_logits + at, vocab * sizeof(float)) != 0) {
            fail_msg("row %d of %d differs", row, num_rows);
        }
    }
}

static const int32_t whole[2] = {256, 244};

static void a_prompt_may_be_cut_anywhere_in_a_cell(void **state)
{
    (void)state;
    static const int32_t cut[] = {1, 2, 3, 60, 64, 63, 62, 1, 17, 227};
    demo opened = prepared(0, MLA_KV_BF16);
    int32_t table[PAGES_EACH];
    make_table(0, 1, table);
    prefill(&opened, table, whole, PROMPT, first_logits);
    make_table(20, 1, table);
    prefill(&opened, table, cut, PROMPT, second_logits);
    check_same_bits(PROMPT);
    demo_close(&opened);
}

static void threads_and_pages_change_nothing(void **state)
{
    (void)state;
    int32_t table[PAGES_EACH];
    demo one = prepared(1, MLA_KV_BF16);
    make_table(0, 1, table);
    prefill(&one, table, whole, PROMPT, first_logits);
    demo_close(&one);
    demo two = prepared(2, MLA_KV_BF16);
    make_table(63, -3, table);
    prefill(&two, table, whole, PROMPT, second_logits);
    demo_close(&two);
    check_same_bits(PROMPT);
}

/* lengths[i] tokens of the prompt are in the cache of sequence i. */
static void decode_some(const demo *opened, const int32_t *which, int32_t num,
                        const int32_t lengths[SEQUENCES],
                        int32_t tables[SEQUENCES][PAGES_EACH], float *logits)
{
    int32_t tokens[SEQUENCES];
    int64_t positions[SEQUENCES];
    const int32_t *step_tables[SEQUENCES];
    mla_error err = {0};
    for (int32_t i = 0; i < num; i++) {
        tokens[i] = prompt[lengths[which[i]]];
        positions[i] = lengths[which[i]];
        step_tables[i] = tables[which[i]];
    }
    model_step step = {.num_sequences = num,
                       .tokens = tokens,
                       .positions = positions,
                       .block_tables = step_tables,
                       .logits = logits};
    must(model_decode(opened->model, &step, &err), &err);
}

/* All layers share one workspace: who has it for a step has it alone. */
static void a_step_within_a_step_is_refused(void **state)
{
    (void)state;
    demo opened = prepared(1, MLA_KV_BF16);
    int32_t table[PAGES_EACH];
    const int32_t *tables[] = {table};
    const int64_t position = 0;
    model_step step = {.num_sequences = 1,
                       .tokens = prompt,
                       .positions = &position,
                       .block_tables = tables,
                       .logits = first_logits};
    mla_error err = {0};
    mlai_loan loan;
    make_table(0, 1, table);
    must(mlai_lane_borrow(&opened.model->lane, 1, &loan, &err), &err);
    assert_int_equal(model_decode(opened.model, &step, &err), MLA_ERR_STATE);
    assert_non_null(strstr(err.message, "lent already"));
    must(mlai_lane_give_back(&opened.model->lane, &loan, &err), &err);
    must(model_decode(opened.model, &step, &err), &err);
    assert_int_equal(mlai_lane_reserve(&opened.model->lane,
                                       opened.model->needs.workspace.bytes + 1, &err),
                     MLA_ERR_STATE); /* bindings have its address */
    demo_close(&opened);
}

static void decoded_rows_do_not_depend_on_their_neighbours(void **state)
{
    (void)state;
    static const int32_t lengths[SEQUENCES] = {1, 200, 256, 300, 499};
    static const int32_t order[3][SEQUENCES] = {
        {0, 1, 2, 3, 4}, {4, 2, 0, 1, 3}, {3, 1, 4, 0, 2}};
    demo opened = prepared(0, MLA_KV_BF16);
    int32_t tables[SEQUENCES][PAGES_EACH];
    for (int32_t i = 0; i < SEQUENCES; i++) {
        const int32_t pieces[2] = {lengths[i] < 256 ? lengths[i] : 256, lengths[i] - 256};
        make_table(i * PAGES_EACH, 1, tables[i]);
        prefill(&opened, tables[i], pieces, lengths[i], second_logits);
    }
    for (int32_t i = 0; i < SEQUENCES; i++) {
        decode_some(&opened, &i, 1, lengths, tables, first_logits + (size_t)i * vocab);
    }
    for (int32_t num = 2; num <= SEQUENCES; num++) {
        for (int32_t o = 0; o < 3; o++) {
            float *batch = second_logits + (size_t)SEQUENCES * vocab;
            decode_some(&opened, order[o], num, lengths, tables, batch);
            for (int32_t i = 0; i < num; i++) {
                assert_memory_equal(batch + (size_t)i * vocab,
                                    first_logits + (size_t)order[o][i] * vocab,
                                    vocab * sizeof(float));
            }
        }
    }
    demo_close(&opened);
}

/* rows[i] tokens of the prompt from lengths[i] on, each its own step or all in one. */
static void verify_some(const demo *opened, const int32_t rows[SEQUENCES],
                        const int32_t lengths[SEQUENCES],
                        int32_t tables[SEQUENCES][PAGES_EACH], float *logits,
                        float *features)
{
    int32_t tokens[SEQUENCES * STEP_ROWS];
    int64_t positions[SEQUENCES];
    const int32_t *step_tables[SEQUENCES];
    int32_t num = 0;
    mla_error err = {0};
    for (int32_t i = 0; i < SEQUENCES; i++) {
        positions[i] = lengths[i];
        step_tables[i] = tables[i];
        for (int32_t j = 0; j < rows[i]; j++) {
            tokens[num++] = prompt[lengths[i] + j];
        }
    }
    model_step step = {.num_sequences = SEQUENCES,
                       .num_rows = rows,
                       .tokens = tokens,
                       .positions = positions,
                       .block_tables = step_tables,
                       .logits = logits,
                       .features = features};
    must(model_decode(opened->model, &step, &err), &err);
}

static void rows_of_one_step_are_those_of_single_steps(void **state)
{
    (void)state;
    enum { MOST = SEQUENCES * STEP_ROWS };
    static const int32_t lengths[SEQUENCES] = {1, 62, 255, 300, 495};
    static const int32_t rows[SEQUENCES] = {5, 3, 2, 1, 4};
    demo opened = prepared(0, MLA_KV_BF16);
    size_t width = (size_t)model_config_of(opened.model)->hidden_size;
    int32_t tables[SEQUENCES][PAGES_EACH];
    float *features = calloc(2 * MOST, width * sizeof(float));
    float *single = first_logits + (size_t)MOST * vocab;
    assert_non_null(features);
    for (int32_t i = 0; i < SEQUENCES; i++) {
        const int32_t pieces[2] = {lengths[i] < 256 ? lengths[i] : 256, lengths[i] - 256};
        make_table(i * PAGES_EACH, 1, tables[i]);
        prefill(&opened, tables[i], pieces, lengths[i], second_logits);
    }
    for (int32_t j = 0; j < STEP_ROWS; j++) {
        const int32_t one[SEQUENCES] = {1, 1, 1, 1, 1};
        int32_t at[SEQUENCES];
        for (int32_t i = 0; i < SEQUENCES; i++) {
            at[i] = lengths[i] + (j < rows[i] ? j : rows[i] - 1);
        }
        verify_some(&opened, one, at, tables, single, features);
        for (int32_t i = 0, row = 0; i < SEQUENCES; row += rows[i++]) {
            size_t to = (size_t)(row + (j < rows[i] ? j : rows[i] - 1));
            memcpy(first_logits + to * vocab, single + (size_t)i * vocab,
                   vocab * sizeof(float));
            memcpy(features + (MOST + to) * width, features + (size_t)i * width,
                   width * sizeof(float));
        }
    }
    verify_some(&opened, rows, lengths, tables, second_logits, features);
    check_same_bits(5 + 3 + 2 + 1 + 4);
    assert_memory_equal(features, features + (size_t)MOST * width,
                        (5 + 3 + 2 + 1 + 4) * width * sizeof(float));
    assert_true(features[0] != 0.0F);
    free(features);
    demo_close(&opened);
}

static double distance_of_rows(const float *a, const float *b)
{
    double worst = 0.0;
    for (int32_t i = 0; i < (int32_t)vocab; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        worst = difference > worst || isnan(difference) ? difference : worst;
    }
    return worst;
}

static double largest_of_row(const float *a)
{
    double largest = 0.0;
    for (size_t i = 0; i < vocab; i++) {
        largest = fabs((double)a[i]) > largest ? fabs((double)a[i]) : largest;
    }
    return largest;
}

/* Both forms read the same rows; how these were rounded is the input of both. */
static void decode_continues_what_prefill_began_in_every_format(void **state)
{
    (void)state;
    static const mla_kv_format formats[4] = {MLA_KV_F32, MLA_KV_BF16, MLA_KV_FP8,
                                             MLA_KV_FP8_G128};
    static const int32_t lengths[2] = {255, 300};
    for (int f = 0; f < num_formats; f++) {
        demo opened = prepared(0, formats[f]);
        int32_t tables[SEQUENCES][PAGES_EACH];
        make_table(0, 1, tables[0]);
        make_table(30, 1, tables[1]);
        prefill(&opened, tables[0], whole, PROMPT, first_logits);
        for (int32_t i = 0; i < 2; i++) {
            const int32_t pieces[2] = {lengths[i] < 256 ? lengths[i] : 256,
                                       lengths[i] - 256};
            const int32_t all[SEQUENCES] = {lengths[i], lengths[i]};
            int32_t which = 1;
            prefill(&opened, tables[1], pieces, lengths[i], second_logits);
            decode_some(&opened, &which, 1, all, tables, second_logits);
            double worst =
                distance_of_rows(second_logits, first_logits + (size_t)lengths[i] * vocab);
            /* A sum that lands on the other side of a rounding boundary of fp8 moves a
             * cached value by an eighth, of bf16 by a 256th. */
            double scale = largest_of_row(first_logits + (size_t)lengths[i] * vocab);
            double bound = formats[f] == MLA_KV_F32 ? 1e-5 : 0.05;
            if (!(worst <= bound * scale)) {
                fail_msg("format %d, position %d: %g apart", (int)formats[f], lengths[i],
                         worst);
            }
        }
        demo_close(&opened);
    }
}

static engine_request sampled(int32_t num_prompt, uint64_t seed)
{
    return (engine_request){
        .prompt = prompt,
        .num_prompt = num_prompt,
        .max_tokens = 12,
        .sampling = {.temperature = 1.0F, .top_k = 50, .top_p = 0.95F, .seed = seed},
    };
}

static void sampled_tokens_do_not_depend_on_the_batch(void **state)
{
    (void)state;
    demo opened = demo_open(&(demo_options){
        .dir = dir, .isa_mask = isa_mask, .kv = MLA_KV_BF16, .max_requests = 4});
    engine_request requests[6];
    demo_output together;
    demo_output alone;
    int32_t num_different = 0;
    for (int32_t i = 0; i < 6; i++) {
        requests[i] = sampled(3 + 50 * i, (uint64_t)i);
    }
    requests[5] = sampled(3, 9); /* the first prompt with another seed */
    demo_generate(&opened, requests, 6, &together);
    for (int32_t i = 0; i < 6; i++) {
        demo_generate(&opened, &requests[i], 1, &alone);
        assert_int_equal(alone.num[0], together.num[i]);
        assert_memory_equal(alone.ids[0], together.ids[i],
                            (size_t)alone.num[0] * sizeof(int32_t));
    }
    for (int32_t i = 0; i < 12; i++) {
        num_different += together.ids[0][i] != together.ids[5][i];
    }
    assert_true(num_different > 0);
    demo_close(&opened);
}

static void a_frozen_engine_runs_without_an_allocation(void **state)
{
    (void)state;
    demo opened = demo_open(&(demo_options){
        .dir = dir, .isa_mask = isa_mask, .kv = MLA_KV_BF16, .max_requests = 2});
    engine_request requests[3] = {sampled(270, 1), sampled(5, 2), sampled(2, 3)};
    demo_output out;
    mla_error err = {0};
    double nll = 0.0;
    must(mla_context_freeze(opened.context, &err), &err);
    uint64_t before = demo_num_allocs(&opened);
    demo_generate(&opened, requests, 3, &out);
    must(engine_score(opened.engine, prompt, 300, &nll, &err), &err);
    assert_true(isfinite(nll) && nll > 0.0);
    assert_int_equal(demo_num_allocs(&opened), before);
    demo_close(&opened);
}

static int run_level(const char *name, uint32_t mask)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_may_be_cut_anywhere_in_a_cell),
        cmocka_unit_test(threads_and_pages_change_nothing),
        cmocka_unit_test(a_step_within_a_step_is_refused),
        cmocka_unit_test(decoded_rows_do_not_depend_on_their_neighbours),
        cmocka_unit_test(rows_of_one_step_are_those_of_single_steps),
        cmocka_unit_test(decode_continues_what_prefill_began_in_every_format),
        cmocka_unit_test(sampled_tokens_do_not_depend_on_the_batch),
        cmocka_unit_test(a_frozen_engine_runs_without_an_allocation),
    };
    isa_mask = mask;
    return cmocka_run_group_tests_name(name, tests, start, end);
}

int forward_suite(const char *model_dir)
{
    levels suite = levels_start("forward");
    dir = model_dir;
    if (levels_run(&suite, "c", true)) {
        suite.num_failed += run_level("c", MLA_ISA_C);
    }
    if (levels_run(&suite, "avx2", (mlai_cpu_isa() & MLA_ISA_AVX2) != 0)) {
        suite.num_failed += run_level("avx2", MLA_ISA_C | MLA_ISA_AVX2);
    }
    return levels_finish(&suite);
}
