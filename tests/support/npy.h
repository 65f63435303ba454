/* npy.h - reference arrays: little-endian f32 or int32 in C order. Anything else fails the
 * test that asked for it. */
#ifndef TEST_NPY_H
#define TEST_NPY_H

#include <stddef.h>
#include <stdint.h>

enum { NPY_DIMS = 4 };

typedef struct npy {
    void *file; /* malloc'd; test_npy_free */
    const void *data;
    int num_dims;
    int64_t dims[NPY_DIMS];
    size_t num; /* items */
} npy;

/* type: "<f4" or "<i4". */
npy test_npy_read(const char *path, const char *type);
void test_npy_free(npy *array);

#endif
