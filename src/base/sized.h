/* sized.h - structs that begin with their own size, so that a caller built with an older or
 * a newer header is understood (see "Sized structs" in mla.h).
 *
 *   mla_caps caps;
 *   MLAI_TRY(MLAI_SIZED_READ(mla_caps, num_pages, caller_caps, &caps));
 *
 *   MLAI_TRY(MLAI_SIZED_CHECK_OUT(mla_device_info, info));
 *   ... fill a full mla_device_info `full` ...
 *   MLAI_SIZED_FILL(mla_device_info, info, &full);
 *
 * A struct may be larger than ours only by zeros, and by no more than
 * MLAI_SIZED_MAX_TAIL_BYTES: a struct_size that was never set is refused before what lies
 * behind the struct is read. */
#ifndef MLA_BASE_SIZED_H
#define MLA_BASE_SIZED_H

#include <stddef.h>

#include "base/status.h"

enum { MLAI_SIZED_MAX_TAIL_BYTES = 4096 };

/* Where a field ends, from the start of its struct. */
#define MLAI_END_OF(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* Reads *in into *copy, a full `type` on the caller's side of the library: what is missing
 * reads as zero, and copy->struct_size is sizeof(type). last_required: the last field that
 * has no default. MLA_ERR_ARGUMENT with both sizes; then *copy is not written. */
#define MLAI_SIZED_READ(type, last_required, in, copy)                                     \
    mlai_sized_read(#type, (in), MLAI_END_OF(type, last_required), (copy), sizeof(type),   \
                    err)
mla_status mlai_sized_read(const char *name, const void *in, size_t required_bytes,
                           void *copy, size_t copy_bytes, mla_error *err);

/* Refuses an out struct that does not even hold its struct_size, or whose unknown tail is
 * not zero. */
#define MLAI_SIZED_CHECK_OUT(type, out)                                                    \
    mlai_sized_check(#type, (out), sizeof(size_t), sizeof(type), err)
mla_status mlai_sized_check(const char *name, const void *data, size_t required_bytes,
                            size_t known_bytes, mla_error *err);

/* Copies *full into *out as far as it reaches; out->struct_size stays as it was. */
#define MLAI_SIZED_FILL(type, out, full) mlai_sized_fill((out), (full), sizeof(type))
void mlai_sized_fill(void *out, const void *full, size_t full_bytes);

#endif
