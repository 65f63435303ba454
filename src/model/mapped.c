/* mapped.c - files in memory, in the books for as long as they are mapped. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/file.h"
#include "model/mapped.h"

static mla_status map(int fd, const char *name, mapped_file *out, mla_error *err)
{
    void *data = mmap(NULL, out->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, errno, MLAI_HERE,
                               "cannot map the %zu bytes of %.100s", out->bytes, name);
    }
    out->data = data;
    return MLA_OK;
}

static mla_status book_and_map(mlai_ledger *ledger, int fd, const char *name,
                               mapped_file *out, mla_error *err)
{
    MLAI_CHECK(out->bytes > 0 && out->bytes <= INT64_MAX, MLA_ERR_CORRUPT,
               "%.100s has %zu bytes and is no safetensors file", name, out->bytes);
    MLAI_TRY(mlai_ledger_book(ledger, MLA_SPACE_HOST, MLA_FOR_WEIGHTS, (int64_t)out->bytes,
                              name, err));
    mla_status status = map(fd, name, out, err);
    if (status != MLA_OK) {
        (void)mlai_ledger_book(ledger, MLA_SPACE_HOST, MLA_FOR_WEIGHTS,
                               -(int64_t)out->bytes, name, NULL);
    }
    return status;
}

mla_status mapped_file_open(mlai_ledger *ledger, const char *dir, const char *name,
                            mapped_file *out, mla_error *err)
{
    int fd = -1;
    mapped_file file = {0};
    MLAI_TRY(file_open(dir, name, &fd, &file.bytes, err));
    mla_status status = book_and_map(ledger, fd, name, &file, err);
    (void)close(fd);
    if (status == MLA_OK) {
        *out = file;
    }
    return status;
}

static void unmap(mlai_ledger *ledger, mapped_file *file)
{
    if (file->data) {
        (void)munmap(file->data, file->bytes);
        (void)mlai_ledger_book(ledger, MLA_SPACE_HOST, MLA_FOR_WEIGHTS,
                               -(int64_t)file->bytes, "a mapped file", NULL);
    }
}

void mapped_files_close(mapped_files *files)
{
    if (!files->files) {
        return;
    }
    for (size_t i = 0; i < files->num; i++) {
        unmap(files->ledger, &files->files[i]);
    }
    mlai_ledger_give(files->ledger, MLA_SPACE_HOST, MLA_FOR_CONTEXT,
                     files->num * sizeof *files->files, files->files);
    *files = (mapped_files){0};
}
