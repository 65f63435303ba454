/* kernel_cache.h - compiled kernels on disk, one file each, named by a hash of everything that
 * the compiler was given. A file is
 *
 *   "MLAKERN1" | the hash that names it | bytes of the image | hash of the image | image
 *
 * It is written beside its place, synced, and moved there, so that readers see a whole file or
 * none and writers in many processes do no harm. What is not as it should be is CORRUPT; the
 * caller compiles again, which replaces it. */
#ifndef MLA_DEVICE_CUDA_KERNEL_CACHE_H
#define MLA_DEVICE_CUDA_KERNEL_CACHE_H

#include <stdbool.h>

#include "base/status.h"

enum { MLAI_KERNEL_ID_BYTES = 16 };

/* Equal for equal input to an equal compiler. */
typedef struct mlai_kernel_id {
    unsigned char byte[MLAI_KERNEL_ID_BYTES];
} mlai_kernel_id;

/* options: [num_options], the architecture's included. compiler: its version. */
mlai_kernel_id mlai_kernel_id_of(const char *source, const char *const *options,
                                 int32_t num_options, int32_t compiler);
bool mlai_kernel_id_is_equal(const mlai_kernel_id *a, const mlai_kernel_id *b);

typedef enum mlai_cached {
    MLAI_CACHED_ABSENT,
    MLAI_CACHED_FOUND,
    MLAI_CACHED_CORRUPT
} mlai_cached;

/* FOUND: image [*image_bytes], at most max_bytes of it. why: filled if CORRUPT; may be NULL. */
mlai_cached mlai_kernel_cache_get(const char *directory, const mlai_kernel_id *id,
                                  void *image, size_t max_bytes, size_t *image_bytes,
                                  mla_error *why);

/* Makes the directory (not those above it) where it is missing. A failure leaves what was
 * there: MLA_ERR_STATE, with errno in native_code. */
mla_status mlai_kernel_cache_put(const char *directory, const mlai_kernel_id *id,
                                 const void *image, size_t image_bytes, mla_error *err);

#endif
