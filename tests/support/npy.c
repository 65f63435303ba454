/* npy.c - reading npy files: see npy.h. */
#include "support/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADER_AT = 10 }; /* version 1: magic, version, and two bytes of length */

static unsigned char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail_msg("%s cannot be opened", path);
        return NULL;
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long end = ftell(file);
    assert_true(end > HEADER_AT);
    *bytes = (size_t)end;
    rewind(file);
    unsigned char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, file), *bytes);
    data[*bytes] = 0;
    (void)fclose(file);
    return data;
}

static void read_shape(const char *header, npy *array)
{
    const char key[] = "'shape': (";
    const char *at = strstr(header, key);
    if (!at) {
        fail_msg("no shape in %s", header);
        return;
    }
    array->num = 1;
    for (at += sizeof key - 1; *at != ')';) {
        char *end;
        array->dims[array->num_dims] = strtoll(at, &end, 10);
        assert_true(end != at && array->num_dims < NPY_DIMS);
        array->num *= (size_t)array->dims[array->num_dims++];
        at = end + strspn(end, ", ");
    }
}

npy test_npy_read(const char *path, const char *type)
{
    npy array = {0};
    size_t bytes = 0;
    unsigned char *file = read_file(path, &bytes);
    if (!file) { /* read_file has failed the test; compilers do not know that */
        return array;
    }
    assert_memory_equal(file, "\x93NUMPY\x01", 7);
    size_t header_bytes = (size_t)file[8] + ((size_t)file[9] << 8);
    assert_true(HEADER_AT + header_bytes <= bytes);
    char *header = (char *)file + HEADER_AT;
    char last = header[header_bytes];
    header[header_bytes] = 0;
    assert_non_null(strstr(header, type));
    assert_non_null(strstr(header, "'fortran_order': False"));
    read_shape(header, &array);
    header[header_bytes] = last;
    assert_int_equal(HEADER_AT + header_bytes + 4 * array.num, bytes);
    array.file = file;
    array.data = header + header_bytes;
    return array;
}

void test_npy_free(npy *array)
{
    free(array->file);
    *array = (npy){0};
}
