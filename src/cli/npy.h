/* npy.h - NumPy's array files, versions 1 to 3: the little-endian f32 and int32 arrays in C
 * order that `mla attend` reads and writes, and nothing else. A file must be exactly as long
 * as its header says. */
#ifndef MLA_CLI_NPY_H
#define MLA_CLI_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "mla/mla.h"

enum { NPY_MAX_DIMS = 8, NPY_ITEM_BYTES = 4 };

typedef enum npy_type { NPY_F32 = 1, NPY_INT32 } npy_type;

typedef struct npy_header {
    npy_type type;
    int32_t num_dims;
    int64_t dims[NPY_MAX_DIMS]; /* [num_dims]; each >= 0 */
    size_t num_items;           /* their product; 1 where there is none */
    size_t data_offset;         /* of the first item in the file */
} npy_header;

/* file: read, all `bytes` bytes of a file. out: written on MLA_OK. Allocates nothing.
 * MLA_ERR_CORRUPT where it is no such file, MLA_ERR_UNSUPPORTED where it is one of another
 * kind. */
mla_status npy_parse(const void *file, size_t bytes, npy_header *out, mla_error *err);

/* A file that was read whole, in memory of the context. */
typedef struct npy_array {
    npy_header header;
    const void *data; /* [num_items], aligned to 64 bytes; NULL where there is none */
    void *block;      /* the memory behind it */
    size_t block_bytes;
    mla_context *context;
    mla_purpose purpose;
} npy_array;

/* context: borrowed until npy_free. path: read. out: owned, npy_free. */
mla_status npy_read(mla_context *context, mla_purpose purpose, const char *path,
                    npy_array *out, mla_error *err);
void npy_free(npy_array *array);

/* Writes `path` whole or not at all. dims: [num_dims]; data: [product of dims]. */
typedef struct npy_source {
    npy_type type;
    int32_t num_dims;
    int64_t dims[NPY_MAX_DIMS];
    const void *data;
} npy_source;
mla_status npy_write(const char *path, const npy_source *source, mla_error *err);

#endif
