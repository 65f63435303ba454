/* fake_nvrtc.c - the compiler half of fake_cuda.h: an image is "image of NAME". */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cuda/workers.h"
#include "support/fake_nvrtc.h"

struct mlai_nvrtc_text {
    char name[64];
};

static atomic_int *num_compiled; /* shared with the worker processes */
static fake_compiler meets;
static const char *met;
static int version[2];

static int get_version(int *major, int *minor)
{
    *major = version[0];
    *minor = version[1];
    return 0;
}

static int create(mlai_nvrtc_program *program, const char *source, const char *name,
                  int num_headers, const char *const *headers, const char *const *names)
{
    (void)headers;
    (void)names;
    if (!source || num_headers != 0) {
        return 1;
    }
    *program = calloc(1, sizeof **program);
    (void)snprintf((*program)->name, sizeof(*program)->name, "%s", name);
    return 0;
}

static int destroy(mlai_nvrtc_program *program)
{
    free(*program);
    *program = NULL;
    return 0;
}

static fake_compiler how_it_goes(mlai_nvrtc_program program)
{
    return met && strstr(program->name, met) ? meets : FAKE_COMPILES;
}

static int compile(mlai_nvrtc_program program, int num_options, const char *const *options)
{
    (void)num_options;
    (void)options;
    atomic_fetch_add(num_compiled, 1);
    switch (how_it_goes(program)) {
    case FAKE_COMPILE_ERROR:
        return 6;
    case FAKE_COMPILER_CRASHES:
        return raise(SIGSEGV);
    case FAKE_COMPILER_HANGS:
        for (;;) {
            (void)pause();
        }
    case FAKE_COMPILER_LEAVES:
        _exit(0);
    case FAKE_COMPILES:
    case FAKE_IMAGE_TOO_LARGE:
        break;
    }
    return 0;
}

static const char log_text[] = "note: a line before\nk.cu(7): error: it is wrong\nmore\n";

static int log_bytes(mlai_nvrtc_program program, size_t *bytes)
{
    (void)program;
    *bytes = sizeof log_text;
    return 0;
}

static int get_log(mlai_nvrtc_program program, char *text)
{
    (void)program;
    memcpy(text, log_text, sizeof log_text);
    return 0;
}

static int image_bytes(mlai_nvrtc_program program, size_t *bytes)
{
    *bytes = how_it_goes(program) == FAKE_IMAGE_TOO_LARGE
                 ? (size_t)MLAI_IMAGE_MAX_BYTES + 1
                 : strlen("image of ") + strlen(program->name) + 1;
    return 0;
}

static int get_image(mlai_nvrtc_program program, char *image)
{
    (void)snprintf(image, MLAI_IMAGE_MAX_BYTES, "image of %s", program->name);
    return 0;
}

static const mlai_nvrtc table = {
    .nvrtcVersion = get_version,
    .nvrtcCreateProgram = create,
    .nvrtcDestroyProgram = destroy,
    .nvrtcCompileProgram = compile,
    .nvrtcGetProgramLogSize = log_bytes,
    .nvrtcGetProgramLog = get_log,
    .nvrtcGetCUBINSize = image_bytes,
    .nvrtcGetCUBIN = get_image,
};

void fake_nvrtc_begin(void)
{
    if (!num_compiled) {
        num_compiled = mmap(NULL, sizeof *num_compiled, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(num_compiled, MAP_FAILED);
    }
    *num_compiled = 0;
    met = NULL;
    version[0] = 13;
    version[1] = 0;
    mlai_nvrtc_install(&table);
}

void fake_nvrtc_end(void)
{
    mlai_nvrtc_install(NULL);
}

void fake_nvrtc_meet(fake_compiler how, const char *name)
{
    meets = how;
    met = name;
}

void fake_nvrtc_set_version(int major, int minor)
{
    version[0] = major;
    version[1] = minor;
}

int fake_nvrtc_num_compiled(void)
{
    return *num_compiled;
}
