/* fake_cuda.h - a CUDA driver and an NVRTC that run no kernel: device memory is host memory,
 * launches and graphs are noted, handles are checked, and any call can be made to fail. With
 * it the whole host path of the CUDA backend runs on a machine without a GPU.
 *
 * Using it wrongly (a freed handle, a wait inside a capture, a call without a current context,
 * memory that goes while kernels may still use it)
 * is noted as misuse: fake_cuda_check fails the test for it and for whatever was not given
 * back. One thread at a time, but the destroyers of user objects. */
#ifndef TEST_FAKE_CUDA_H
#define TEST_FAKE_CUDA_H

#include <stdbool.h>

#include "device/cuda/driver.h"
#include "device/cuda/nvrtc.h"

typedef struct fake_launch {
    char module[64]; /* what was compiled */
    char function[32];
    unsigned grid_x, grid_y, block_x, shared_bytes;
    bool is_early; /* may begin before the launch in front of it has ended */
    mlai_cu_stream stream;
    unsigned char parameters[168]; /* the first bytes of the kernel's parameter */
} fake_launch;

enum { FAKE_MOST_LAUNCHES = 256 };

typedef struct fake_cuda {
    int num_devices, major, minor;
    int num_calls; /* those that may fail, since fake_cuda_begin */
    int fail_at;   /* the call that fails, from 0; < 0: none */
    mlai_cu_result fail_with;
    bool is_running;     /* kernels were launched and nobody has waited for the device */
    bool is_busy;        /* events have not happened yet */
    bool is_sticky;      /* and all that follow, too */
    mlai_cu_result dead; /* what every call gives; 0: alive */
    const char *failed;  /* the call that was made to fail */
    int num_launches;    /* of streams and of replayed graphs */
    fake_launch launch[FAKE_MOST_LAUNCHES]; /* the first of them */
    int num_blocks, num_modules, num_streams, num_events, num_graphs, num_objects;
    int num_primaries, depth; /* retained; contexts pushed */
    size_t bytes;             /* of the blocks */
    mlai_cu_context current;
    char misuse[128]; /* the first one */
} fake_cuda;

extern fake_cuda fake;

/* Installs both tables and forgets everything. One device, sm_90. */
void fake_cuda_begin(void);
/* Fails where something was misused or not given back, and installs the real tables. */
void fake_cuda_end(void);
void fake_cuda_check(void);    /* the checks alone */
bool fake_cuda_is_clean(void); /* the same for a program's end: says what is not */

/* The call after the next `after` ones fails. */
void fake_cuda_fail(int after, mlai_cu_result with, bool is_sticky);

/* A context that a caller might have made current; a stream of the caller's. */
void fake_cuda_set_current(int device);
mlai_cu_stream fake_cuda_stream(void);
void fake_cuda_stream_free(mlai_cu_stream stream);
const mlai_cuda_driver *fake_cuda_driver(void);

typedef enum fake_compiler {
    FAKE_COMPILES,
    FAKE_COMPILE_ERROR,
    FAKE_COMPILER_CRASHES,
    FAKE_COMPILER_HANGS,
    FAKE_COMPILER_LEAVES,
    FAKE_IMAGE_TOO_LARGE,
} fake_compiler;

/* How the compiler meets a program whose name contains `name`; others compile. */
void fake_nvrtc_meet(fake_compiler how, const char *name);
void fake_nvrtc_set_version(int major, int minor);
int fake_nvrtc_num_compiled(void); /* in all processes, since fake_cuda_begin */

#endif
