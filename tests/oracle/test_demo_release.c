/* The demo model against Hugging Face transformers in f32 (tests/data/demo): the same greedy
 * tokens, logits within 2e-4, and the same likelihood of a text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu.h"
#include "support/demo.h"
#include "support/levels.h"
#include "support/npy.h"

static uint32_t isa_mask; /* of the level under test */
static demo_generation reference[DEMO_MAX_GENERATIONS];
static int32_t num_reference;

static int read_reference(void **state)
{
    (void)state;
    num_reference = demo_read_generations(reference);
    return 0;
}

static engine_request request_of(const demo_generation *generation)
{
    return (engine_request){
        .prompt = generation->prompt,
        .num_prompt = generation->num_prompt,
        .max_tokens = 64,
    };
}

/* The reference's tokens up to `end`. */
static void check_ids(const demo_output *out, int32_t index, int32_t end)
{
    const demo_generation *expected = &reference[index];
    for (int32_t i = 0; i < end; i++) {
        if (i >= out->num[index] || out->ids[index][i] != expected->ids[i]) {
            fail_msg("%s: token %d of %d is %d, not %d", expected->name, i, out->num[index],
                     i < out->num[index] ? out->ids[index][i] : -1, expected->ids[i]);
        }
    }
}

static void check_all(const demo *opened, int32_t first, int32_t num)
{
    engine_request requests[DEMO_MAX_GENERATIONS] = {{0}};
    demo_output out;
    for (int32_t i = 0; i < num; i++) {
        requests[i] = request_of(&reference[first + i]);
    }
    demo_generate(opened, requests, num, &out);
    for (int32_t i = 0; i < num; i++) {
        memmove(out.ids[first + i], out.ids[i], first ? sizeof out.ids[i] : 0);
        out.num[first + i] = out.num[i];
        check_ids(&out, first + i, reference[first + i].num_ids);
        assert_int_equal(out.num[first + i], reference[first + i].num_ids);
        assert_int_equal(out.results[i].finish, reference[first + i].finish);
    }
}

static void check_threads(int32_t threads)
{
    demo opened = demo_open(
        &(demo_options){.threads = threads, .isa_mask = isa_mask, .max_requests = 16});
    check_all(&opened, 0, num_reference);
    for (int32_t i = 0; i < num_reference; i++) {
        check_all(&opened, i, 1);
    }
    demo_close(&opened);
}

static void greedy_ids_are_the_references_with_one_thread(void **state)
{
    (void)state;
    check_threads(1);
}

static void greedy_ids_are_the_references_with_all_threads(void **state)
{
    (void)state;
    check_threads(0);
}

/* More requests than slots: a slot is used again. */
static void greedy_ids_are_the_references_when_requests_wait(void **state)
{
    (void)state;
    demo opened = demo_open(
        &(demo_options){.isa_mask = isa_mask, .max_requests = 3, .max_context = 160});
    check_all(&opened, 0, num_reference);
    demo_close(&opened);
}

static void bf16_ids_are_the_references_up_to_a_small_margin(void **state)
{
    (void)state;
    demo opened = demo_open(
        &(demo_options){.isa_mask = isa_mask, .kv = MLA_KV_BF16, .max_requests = 16});
    engine_request requests[DEMO_MAX_GENERATIONS] = {{0}};
    demo_output out;
    int32_t num_sure = 0;
    for (int32_t i = 0; i < num_reference; i++) {
        requests[i] = request_of(&reference[i]);
    }
    demo_generate(&opened, requests, num_reference, &out);
    for (int32_t i = 0; i < num_reference; i++) {
        int32_t sure = 0;
        while (sure < reference[i].num_ids && reference[i].margins[sure] >= 0.1) {
            sure++;
        }
        check_ids(&out, i, sure);
        num_sure += sure;
    }
    assert_true(num_sure > 100); /* or this showed nothing */
    demo_close(&opened);
}

static float *take_floats(size_t num)
{
    float *data = malloc(num * sizeof *data);
    assert_non_null(data);
    return data;
}

static void prepare_alone(demo *opened, int32_t max_sequences)
{
    mla_error err = {0};
    model_limits limits = {.kv_format = MLA_KV_F32,
                           .max_sequences = max_sequences,
                           .max_context_tokens = 1024,
                           .num_pages = 64};
    must(model_prepare(opened->model, &limits, &err), &err);
}

static void make_table(int32_t first, int32_t table[16])
{
    for (int32_t i = 0; i < 16; i++) {
        table[i] = first + i;
    }
}

static void check_logits(const char *form, const float *logits, const npy *expected)
{
    const float *values = expected->data;
    double worst = 0.0;
    for (size_t i = 0; i < expected->num; i++) {
        double difference = fabs((double)logits[i] - (double)values[i]);
        worst = difference > worst || isnan(difference) ? difference : worst;
    }
    print_message("%s: largest difference of a logit %.2e\n", form, worst);
    assert_true(worst <= 2e-4);
}

static void logits_are_the_references_in_both_forms(void **state)
{
    (void)state;
    npy ids = test_npy_read(TEST_DATA "/demo/logits/ids.npy", "<i4");
    npy expected = test_npy_read(TEST_DATA "/demo/logits/logits.npy", "<f4");
    demo opened = demo_load(&(demo_options){.isa_mask = isa_mask});
    float *logits = take_floats(expected.num);
    int32_t num = (int32_t)ids.num;
    int32_t table[16];
    const int32_t *tables[1] = {table};
    mla_error err = {0};
    prepare_alone(&opened, 1);
    make_table(5, table);
    model_chunk chunk = {.tokens = ids.data,
                         .num_tokens = num,
                         .block_table = table,
                         .logits = logits,
                         .is_every_row = true};
    must(model_prefill(opened.model, &chunk, &err), &err);
    check_logits("prefill", logits, &expected);
    make_table(40, table);
    for (int32_t i = 0; i < num; i++) {
        int64_t position = i;
        model_step step = {.num_sequences = 1,
                           .tokens = (const int32_t *)ids.data + i,
                           .positions = &position,
                           .block_tables = tables,
                           .logits = logits + (size_t)i * (size_t)expected.dims[1]};
        must(model_decode(opened.model, &step, &err), &err);
    }
    check_logits("decode", logits, &expected);
    free(logits);
    demo_close(&opened);
    test_npy_free(&ids);
    test_npy_free(&expected);
}

static int run_level(const char *name, uint32_t mask)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_ids_are_the_references_with_one_thread),
        cmocka_unit_test(greedy_ids_are_the_references_with_all_threads),
        cmocka_unit_test(greedy_ids_are_the_references_when_requests_wait),
        cmocka_unit_test(bf16_ids_are_the_references_up_to_a_small_margin),
        cmocka_unit_test(logits_are_the_references_in_both_forms),
    };
    isa_mask = mask;
    return cmocka_run_group_tests_name(name, tests, read_reference, NULL);
}

int main(void)
{
    levels suite = levels_start("demo");
    if (levels_run(&suite, "c", true)) {
        suite.num_failed += run_level("c", MLA_ISA_C);
    }
    if (levels_run(&suite, "avx2", (mlai_cpu_isa() & MLA_ISA_AVX2) != 0)) {
        suite.num_failed += run_level("avx2", MLA_ISA_C | MLA_ISA_AVX2);
    }
    return levels_finish(&suite);
}
