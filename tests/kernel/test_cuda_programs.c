/* test_cuda_programs.c - every CUDA program compiles with real NVRTC, without a GPU, for each
 * architecture: without a spill, and within its shared memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the three above */
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention/cuda/programs.h"
#include "support/levels.h"

enum { MAX_SHARED = 99 * 1024, SHORT = 4096, LONG = 131072 };

/* So that each tile class is there. */
static const struct {
    int32_t heads, tokens;
} plans[] = {{16, SHORT}, {128, SHORT}, {128, LONG}};

typedef struct nvrtc {
    void *library;
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*destroy)(void **);
} nvrtc;

static nvrtc compiler;

static bool find(const char *name, void *entry)
{
    void *found = dlsym(compiler.library, name);
    memcpy(entry, &found, sizeof found);
    return found != NULL;
}

static bool open_compiler(void)
{
    static const char *const places[] = {
        "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
        "/usr/local/cuda/targets/x86_64-linux/lib/libnvrtc.so.13"};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !compiler.library; i++) {
        compiler.library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
    }
    return compiler.library && find("nvrtcCreateProgram", &compiler.create) &&
           find("nvrtcCompileProgram", &compiler.compile) &&
           find("nvrtcGetProgramLogSize", &compiler.log_size) &&
           find("nvrtcGetProgramLog", &compiler.log) &&
           find("nvrtcDestroyProgram", &compiler.destroy);
}

/* What ptxas says of a program; fails the test if it does not compile. free() it. */
static char *log_of(const mlai_cuda_shape *shape, mlai_cuda_program program,
                    const char *architecture)
{
    const mlai_cuda_program_row *row = mlai_cuda_program_of(program);
    mlai_cuda_options options = mlai_cuda_options_of(shape, program);
    const char *list[MLAI_CUDA_MAX_OPTIONS + 2];
    char target[48];
    (void)snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    list[0] = target;
    list[1] = "--ptxas-options=-v";
    for (int32_t i = 0; i < options.num; i++) {
        list[i + 2] = options.text[i];
    }
    void *made;
    size_t bytes;
    assert_int_equal(compiler.create(&made, row->source, row->name, 0, NULL, NULL), 0);
    int result = compiler.compile(made, options.num + 2, list);
    assert_int_equal(compiler.log_size(made, &bytes), 0);
    char *log = calloc(bytes + 1, 1);
    assert_non_null(log);
    assert_int_equal(compiler.log(made, log), 0);
    assert_int_equal(compiler.destroy(&made), 0);
    if (result != 0) {
        fail_msg("%s for %s does not compile:\n%s", row->name, architecture, log);
    }
    return log;
}

/* The number before `words` in the log. */
static long number_before(const char *log, const char *words)
{
    const char *at = strstr(log, words);
    assert_non_null(at);
    while (at > log && at[-1] == ' ') {
        at--;
    }
    while (at > log && at[-1] >= '0' && at[-1] <= '9') {
        at--;
    }
    return strtol(at, NULL, 10);
}

static void check_program(const mlai_cuda_shape *shape, mlai_cuda_program program,
                          const char *architecture)
{
    const char *name = mlai_cuda_program_of(program)->name;
    char *log = log_of(shape, program, architecture);
    long spilled = number_before(log, "bytes spill stores");
    long stack = number_before(log, "bytes stack frame");
    if (spilled != 0 || stack != 0) {
        fail_msg("%s for %s, %d+%d: %ld bytes spilled, %ld of stack", name, architecture,
                 shape->latent_dim, shape->rope_dim, spilled, stack);
    }
    free(log);
}

/* Of plans for requests of up to `tokens`. */
static mlai_cuda_shape shape_of(int32_t latent_dim, int32_t rope_dim, mla_kv_format format,
                                int32_t num_heads, int32_t tokens,
                                const mlai_cuda_device *device)
{
    mla_caps caps = {
        .struct_size = sizeof caps,
        .mode = MLA_DECODE,
        .kv_format = format,
        .query_dtype = MLA_BF16,
        .output_dtype = MLA_BF16,
        .num_heads = num_heads,
        .latent_dim = latent_dim,
        .rope_dim = rope_dim,
        .page_tokens = 64,
        .causal = 1,
        .softmax_scale = 1,
        .max_requests = 4,
        .max_query_rows = 4,
        .max_rows_per_request = 1,
        .table_width = tokens / 64,
        .max_context_tokens = tokens,
        .num_pages = 256,
    };
    mlai_geometry geometry;
    mlai_cuda_shape shape;
    assert_int_equal(mlai_geometry_of(&caps, &geometry, NULL), MLA_OK);
    assert_int_equal(mlai_cuda_shape_of(&geometry, device, &shape, NULL), MLA_OK);
    return shape;
}

static void check_geometry(int32_t latent_dim, int32_t rope_dim,
                           const mlai_cuda_device *device)
{
    mlai_cuda_architecture architecture = mlai_cuda_architecture_of(device);
    for (int format = MLA_KV_BF16; format <= MLA_KV_FP8_G128; format++) {
        for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
            mlai_cuda_shape shape = shape_of(latent_dim, rope_dim, (mla_kv_format)format,
                                             plans[i].heads, plans[i].tokens, device);
            assert_true(shape.shared_bytes <= device->shared_block_bytes);
            assert_true(shape.shared_bytes <= MAX_SHARED || shape.tile_rows == 64);
            check_program(&shape, shape.attend, architecture.text);
            if (i == 0) {
                check_program(&shape, shape.append, architecture.text);
            }
        }
    }
    mlai_cuda_shape shape = shape_of(latent_dim, rope_dim, MLA_KV_BF16, 16, SHORT, device);
    check_program(&shape, MLAI_CUDA_MERGE, architecture.text);
}

static const mlai_cuda_device a100 = {8, 0, 108, 167936, 166912};
static const mlai_cuda_device h200 = {9, 0, 132, 233472, 232448};
static const mlai_cuda_device rtx_pro = {12, 0, 188, 102400, 101376};

static void programs_compile_for_sm_80_without_a_spill(void **state)
{
    (void)state;
    check_geometry(512, 64, &a100);
}

static void programs_compile_for_sm_90a_without_a_spill(void **state)
{
    (void)state;
    check_geometry(512, 64, &h200);
}

static void programs_compile_for_sm_120a_without_a_spill(void **state)
{
    (void)state;
    check_geometry(512, 64, &rtx_pro);
}

static void other_widths_compile_without_a_spill(void **state)
{
    (void)state;
    check_geometry(256, 32, &h200);
    check_geometry(256, 64, &h200);
    check_geometry(1024, 64, &h200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_compile_for_sm_80_without_a_spill),
        cmocka_unit_test(programs_compile_for_sm_90a_without_a_spill),
        cmocka_unit_test(programs_compile_for_sm_120a_without_a_spill),
        cmocka_unit_test(other_widths_compile_without_a_spill),
    };
    /* The driver, where there is one, keeps what NVRTC compiled, and then ptxas says nothing. */
    (void)setenv("CUDA_CACHE_DISABLE", "1", 1);
    levels suite = levels_start("cuda_programs");
    if (!levels_run(&suite, "nvrtc", open_compiler())) {
        const char *required = getenv("MLA_REQUIRE");
        return required && strstr(required, "nvrtc") ? 1 : 0;
    }
    suite.num_failed += cmocka_run_group_tests(tests, NULL, NULL);
    return levels_finish(&suite);
}
