/* workers.h - compiles CUDA texts, several at a time, each in a process of its own. A compiler
 * that crashes, hangs or leaks does it there: the failure is named and the caller lives. The
 * memory that a compiler takes goes away with its process, too.
 *
 * A worker is forked, not started from a file: a library has no program of its own to start.
 * It runs on what it has in memory, writes its result into memory that it shares with us, and
 * ends. Between fork and end it needs malloc, which C libraries keep usable in such a child. */
#ifndef MLA_DEVICE_CUDA_WORKERS_H
#define MLA_DEVICE_CUDA_WORKERS_H

#include "base/ledger.h"
#include "device/cuda/nvrtc.h"

enum {
    MLAI_IMAGE_MAX_BYTES = 1 << 20, /* a kernel that is larger is refused */
    MLAI_MAX_WORKERS = 8,
};

/* One text to compile. */
typedef struct mlai_compilation {
    const char *name; /* for messages */
    const char *source;
    const char *const *options; /* [num_options] */
    int32_t num_options;
} mlai_compilation;

typedef struct mlai_workers {
    mlai_ledger *ledger;
    const mlai_nvrtc *nvrtc;
    int32_t num_workers; /* 1..MLAI_MAX_WORKERS at a time */
    int64_t timeout_ns;  /* of one compilation; 0: two minutes */
    /* Asked every few milliseconds: anything but MLA_OK kills the workers and is the result. */
    mla_status (*keep_on)(void *user, mla_error *err);
    /* Given each image when it is there, on the calling thread. */
    mla_status (*take)(void *user, int32_t index, const void *image, size_t image_bytes,
                       mla_error *err);
    void *user;
} mlai_workers;

/* Bytes that mlai_workers_run books as class session, host, while it runs. */
size_t mlai_workers_bytes(int32_t num_workers);

/* All of them or the first failure, by name; no worker is left either way. */
mla_status mlai_workers_run(const mlai_workers *workers,
                            const mlai_compilation *compilation, int32_t num,
                            mla_error *err);

#endif
