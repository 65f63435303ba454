/* test_dispatch.c - a plan uses the best kernels that the CPU and the mask allow, and no
 * instruction beyond them. An argument names the level that must be chosen: CTest runs this
 * program under qemu on CPUs with and without AVX2, where a wrong choice is SIGILL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the three above */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "attention/cpu/kernels.h"
#include "device/cpu.h"
#include "support/attend_case.h"
#include "support/must.h"
#include "support/rig.h"

static const char *expected_name; /* NULL: whatever cpuid says */

static void run_and_judge(mla_plan *plan, const attend_case *c)
{
    mla_error err = {MLA_OK, 0, NULL, ""};
    mla_requirements need = MLA_INIT(mla_requirements);
    must(mla_plan_requirements(plan, &need, &err), &err);
    fenced out = fenced_take(need.output.bytes, 0xff);
    fenced lse = fenced_take(need.lse.bytes, 0xff);
    fenced workspace = fenced_take(need.workspace.bytes, 0xff);
    mla_buffers buffers = c->buffers;
    buffers.output = (mla_out){out.data, out.bytes};
    buffers.lse = (mla_out){lse.data, lse.bytes};
    buffers.workspace = (mla_out){workspace.data, workspace.bytes};
    mla_binding *binding = NULL;
    must(mla_bind(plan, &buffers, &binding, &err), &err);
    must(mla_run(binding, &c->batch, (mla_stream){NULL}, &err), &err);
    mla_unbind(&binding);
    attend_sums sums = {.split_tokens = 512, .num_merges = 1, .u_out = 0x1p-24};
    attend_verdict verdict = attend_case_judge(c, (const float *)(const void *)out.data,
                                               (const float *)(const void *)lse.data, sums);
    assert_string_equal(verdict.first_wrong, "");
    fenced_drop(&out);
    fenced_drop(&lse);
    fenced_drop(&workspace);
}

/* A plan under `isa_mask` says that it uses `name`, and computes attention. */
static void expect_level(uint32_t isa_mask, const char *name)
{
    enum { TEXT_BYTES = 256 };
    rng random = rng_of_seed(1);
    attend_case c = {
        .caps = {.mode = MLA_DECODE,
                 .kv_format = MLA_KV_FP8_G128,
                 .query_dtype = MLA_BF16,
                 .output_dtype = MLA_F32,
                 .num_heads = 5,
                 .latent_dim = 256,
                 .rope_dim = 64,
                 .page_tokens = 16,
                 .causal = 1,
                 .softmax_scale = 0.0721688F},
        .num_requests = 1,
        .lens = {100},
        .rows = {1},
    };
    attend_case_build(&c, &random);
    mla_context *context = rig_context_of_isa(1, isa_mask);
    mla_plan *plan = rig_plan(context, &c.caps);
    char text[TEXT_BYTES];
    mla_plan_describe(plan, text, sizeof text, NULL);
    print_message("%s\n", text);
    assert_int_equal(strncmp(text, "cpu:", 4), 0);
    assert_int_equal(strncmp(text + 4, name, strlen(name)), 0);
    assert_int_equal(text[4 + strlen(name)], ' ');
    run_and_judge(plan, &c);
    mla_plan_release(&plan);
    mla_error err = {MLA_OK, 0, NULL, ""};
    must(mla_context_destroy(&context, &err), &err);
    attend_case_drop(&c);
}

static void the_best_level_of_this_cpu_is_used(void **state)
{
    (void)state;
    const char *best = mlai_cpu_isa() & MLA_ISA_AVX2 ? "avx2" : "c";
    expect_level(0, expected_name ? expected_name : best);
}

static void a_mask_of_portable_c_uses_portable_c(void **state)
{
    (void)state;
    expect_level(MLA_ISA_C, "c");
}

static void a_table_of_kernels_is_there_for_every_mask_with_c(void **state)
{
    (void)state;
    assert_ptr_equal(mlai_cpu_kernels_best(MLA_ISA_C), &mlai_cpu_kernels_c);
    assert_ptr_equal(mlai_cpu_kernels_best(MLA_ISA_C | MLA_ISA_AVX2),
                     &mlai_cpu_kernels_avx2);
    assert_ptr_equal(mlai_cpu_kernels_best(MLA_ISA_C | MLA_ISA_AVX512),
                     &mlai_cpu_kernels_c);
    assert_null(mlai_cpu_kernels_best(0));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_level_of_this_cpu_is_used),
        cmocka_unit_test(a_mask_of_portable_c_uses_portable_c),
        cmocka_unit_test(a_table_of_kernels_is_there_for_every_mask_with_c),
    };
    expected_name = argc > 1 ? argv[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
