/* nvrtc.h - NVIDIA's run-time compiler as one table of functions, opened at run time. It is
 * called in worker processes only (workers.h), but for its version. */
#ifndef MLA_DEVICE_CUDA_NVRTC_H
#define MLA_DEVICE_CUDA_NVRTC_H

#include <stddef.h>

#include "base/status.h"

typedef struct mlai_nvrtc_text *mlai_nvrtc_program;

/* X(name, parameters); each gives an nvrtcResult, 0 for success. */
#define MLAI_NVRTC_CALLS(X)                                                                \
    X(nvrtcVersion, (int *major, int *minor))                                              \
    X(nvrtcCreateProgram,                                                                  \
      (mlai_nvrtc_program * program, const char *source, const char *name,                 \
       int num_headers, const char *const *headers, const char *const *header_names))      \
    X(nvrtcDestroyProgram, (mlai_nvrtc_program * program))                                 \
    X(nvrtcCompileProgram,                                                                 \
      (mlai_nvrtc_program program, int num_options, const char *const *options))           \
    X(nvrtcGetProgramLogSize, (mlai_nvrtc_program program, size_t * bytes))                \
    X(nvrtcGetProgramLog, (mlai_nvrtc_program program, char *log))                         \
    X(nvrtcGetCUBINSize, (mlai_nvrtc_program program, size_t * bytes))                     \
    X(nvrtcGetCUBIN, (mlai_nvrtc_program program, char *image))

typedef struct mlai_nvrtc {
    int version; /* 1000 * major + 10 * minor */
// NOLINTNEXTLINE(bugprone-macro-parentheses): they are declarators
#define MLAI_X(name, parameters) int(*name) parameters;
    MLAI_NVRTC_CALLS(MLAI_X)
#undef MLAI_X
} mlai_nvrtc;

enum { MLAI_NVRTC_OLDEST = 12080 };

/* path: of the library; NULL: libnvrtc.so.13, .12, then what is under /usr/local/cuda. The
 * library stays open. MLA_ERR_UNSUPPORTED where there is none, or it is older than 12.8. */
mla_status mlai_nvrtc_open(const char *path, mlai_nvrtc *out, mla_error *err);

/* For tests: what mlai_nvrtc_open gives from now on; NULL: the real one. */
void mlai_nvrtc_install(const mlai_nvrtc *nvrtc);

#endif
