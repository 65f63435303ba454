/* npy_file.c - whole arrays from and to files. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "base/status.h"
#include "cli/npy.h"

enum { DATA_ALIGN = 64, HEADER_BYTES = 256, MAX_PATH = 4096 };

void npy_free(npy_array *array)
{
    if (array->block) {
        mla_memory_give(array->context, MLA_SPACE_HOST, array->purpose, array->block_bytes,
                        array->block);
    }
    *array = (npy_array){0};
}

static mla_status read_exactly(int file, void *out, size_t bytes, const char *path,
                               mla_error *err)
{
    size_t num = 0;
    while (num < bytes) {
        ssize_t got = read(file, (char *)out + num, bytes - num);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                                   "%s cannot be read", path);
        }
        MLAI_CHECK(got > 0, MLA_ERR_CORRUPT, "%s ended at %zu of its %zu bytes", path, num,
                   bytes);
        num += (size_t)got;
    }
    return MLA_OK;
}

static mla_status file_size(int file, const char *path, size_t *out, mla_error *err)
{
    struct stat info;
    if (fstat(file, &info) != 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE, "%s has no size",
                               path);
    }
    MLAI_CHECK(S_ISREG(info.st_mode) && info.st_size > 0, MLA_ERR_CORRUPT,
               "%s is not a file with something in it", path);
    *out = (size_t)info.st_size;
    return MLA_OK;
}

/* The items move to the front of the block, so that they are aligned. */
static mla_status read_file(int file, const char *path, npy_array *out, mla_error *err)
{
    MLAI_TRY(file_size(file, path, &out->block_bytes, err));
    MLAI_TRY(mla_memory_take(out->context, MLA_SPACE_HOST, out->purpose, out->block_bytes,
                             DATA_ALIGN, &out->block, err));
    MLAI_TRY(read_exactly(file, out->block, out->block_bytes, path, err));
    mla_status status = npy_parse(out->block, out->block_bytes, &out->header, err);
    if (status != MLA_OK) {
        mlai_error_prefix(err, "%s", path);
        return status;
    }
    memmove(out->block, (char *)out->block + out->header.data_offset,
            out->header.num_items * NPY_ITEM_BYTES);
    out->data = out->block;
    return MLA_OK;
}

mla_status npy_read(mla_context *context, mla_purpose purpose, const char *path,
                    npy_array *out, mla_error *err)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused */
    if (file < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                               "%s cannot be opened", path);
    }
    npy_array array = {.context = context, .purpose = purpose};
    mla_status status = read_file(file, path, &array, err);
    (void)close(file);
    if (status != MLA_OK) {
        npy_free(&array);
        return status;
    }
    *out = array;
    return MLA_OK;
}

/* Version 1.0, padded so that the items begin at a multiple of 64. */
static void make_header(const npy_source *source, char out[HEADER_BYTES])
{
    char shape[NPY_MAX_DIMS * 21 + 1];
    size_t used = 0;
    shape[0] = 0;
    for (int32_t i = 0; i < source->num_dims; i++) {
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%lld, ",
                                 (long long)source->dims[i]);
    }
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(HEADER_BYTES - 10);
    out[9] = 0;
    int length = snprintf(out + 10, HEADER_BYTES - 10,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                          source->type == NPY_F32 ? "<f4" : "<i4", shape);
    memset(out + 10 + length, ' ', (size_t)(HEADER_BYTES - 10 - length));
    out[HEADER_BYTES - 1] = '\n';
}

static bool write_all(FILE *file, const npy_source *source)
{
    char header[HEADER_BYTES];
    size_t num = 1;
    make_header(source, header);
    for (int32_t i = 0; i < source->num_dims; i++) {
        num *= (size_t)source->dims[i];
    }
    return fwrite(header, 1, sizeof header, file) == sizeof header &&
           (num == 0 || fwrite(source->data, NPY_ITEM_BYTES, num, file) == num);
}

mla_status npy_write(const char *path, const npy_source *source, mla_error *err)
{
    static char part[MAX_PATH];
    int length = snprintf(part, sizeof part, "%s.part", path);
    MLAI_CHECK(length < MAX_PATH, MLA_ERR_ARGUMENT, "a path of %d characters is too long",
               length);
    FILE *file = fopen(part, "wbe");
    if (!file) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE,
                               "%s cannot be created", part);
    }
    bool is_whole = write_all(file, source);
    is_whole = fclose(file) == 0 && is_whole;
    if (!is_whole || rename(part, path) != 0) {
        int number = errno;
        (void)unlink(part);
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, number, MLAI_HERE,
                               "%s cannot be written", path);
    }
    return MLA_OK;
}
