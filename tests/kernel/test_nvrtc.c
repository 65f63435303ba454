/* The real NVRTC, where there is one: it compiles in a worker process, for architectures that
 * this machine need not have, and what it complains of arrives. Without NVRTC this is skipped
 * by name, unless MLA_REQUIRE names `nvrtc`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/workers.h"

enum { SKIPPED = 77, NUM = 3 };

static mlai_nvrtc nvrtc;

static const char *const options[NUM][2] = {
    {"--gpu-architecture=sm_80", "-DFACTOR=2"},
    {"--gpu-architecture=sm_90a", "-DFACTOR=3"},
    {"--gpu-architecture=sm_120a", "-DFACTOR=4"},
};

static mla_status keep_on(void *user, mla_error *err)
{
    (void)user;
    (void)err;
    return MLA_OK;
}

/* An image is an ELF file that holds the function's name. */
static mla_status take(void *user, int32_t index, const void *image, size_t image_bytes,
                       mla_error *err)
{
    (void)err;
    (void)index;
    int *num_taken = user;
    assert_memory_equal(image,
                        "\x7f"
                        "ELF",
                        4);
    assert_non_null(memmem(image, image_bytes, "scale_all", 9));
    ++*num_taken;
    return MLA_OK;
}

static mla_status compile(const char *source, int *num_taken, mla_error *err)
{
    mlai_ledger ledger;
    mlai_compilation compilation[NUM];
    assert_int_equal(mlai_ledger_init(&ledger, NULL, 0, NULL), MLA_OK);
    for (int i = 0; i < NUM; i++) {
        compilation[i] = (mlai_compilation){"a program", source, options[i], 2};
    }
    mlai_workers workers = {.ledger = &ledger,
                            .nvrtc = &nvrtc,
                            .num_workers = 2,
                            .keep_on = keep_on,
                            .take = take,
                            .user = num_taken};
    return mlai_workers_run(&workers, compilation, NUM, err);
}

static void a_program_is_compiled_for_every_architecture(void **state)
{
    (void)state;
    mla_error err = {MLA_OK, 0, NULL, ""};
    int num_taken = 0;
    mla_status status = compile("extern \"C\" __global__ void scale_all(float *x)\n"
                                "{ x[threadIdx.x] *= FACTOR; }\n",
                                &num_taken, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, MLA_OK);
    assert_int_equal(num_taken, NUM);
}

static void what_the_compiler_complains_of_arrives(void **state)
{
    (void)state;
    mla_error err = {MLA_OK, 0, NULL, ""};
    int num_taken = 0;
    assert_int_equal(compile("extern \"C\" __global__ void scale_all(float *x)\n"
                             "{ x[threadIdx.x] *= nobody; }\n",
                             &num_taken, &err),
                     MLA_ERR_INTERNAL);
    assert_non_null(strstr(err.message, "a program does not compile"));
    assert_non_null(strstr(err.message, "nobody"));
    assert_int_equal(num_taken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_compiled_for_every_architecture),
        cmocka_unit_test(what_the_compiler_complains_of_arrives),
    };
    mla_error err = {MLA_OK, 0, NULL, ""};
    if (mlai_nvrtc_open(NULL, &nvrtc, &err) != MLA_OK) {
        const char *required = getenv("MLA_REQUIRE");
        bool is_required = required && strstr(required, "nvrtc");
        printf("nvrtc %s: %s\n", is_required ? "is required" : "SKIPPED", err.message);
        return is_required ? 1 : SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
