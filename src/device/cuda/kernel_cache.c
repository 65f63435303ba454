/* kernel_cache.c - reading, checking and writing a file: see kernel_cache.h. */
#include "device/cuda/kernel_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MAX_PATH_BYTES = 512, NAME_BYTES = 2 * MLAI_KERNEL_ID_BYTES + 8 };

static const char magic[] = {'M', 'L', 'A', 'K', 'E', 'R', 'N', '1'};

typedef struct header {
    char magic[sizeof magic];
    mlai_kernel_id id;
    uint64_t image_bytes;
    mlai_kernel_id image_hash;
} header;

static mlai_kernel_id id_of_hash(XXH128_hash_t hash)
{
    mlai_kernel_id id;
    XXH128_canonical_t canonical;
    _Static_assert(sizeof canonical == sizeof id, "128 bits");
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(&id, &canonical, sizeof id);
    return id;
}

static mlai_kernel_id hash_of(const void *data, size_t bytes)
{
    return id_of_hash(XXH3_128bits(data, bytes));
}

/* Chained: a text's hash is the seed of the next one's, so that no text can move over a border
 * between two. */
mlai_kernel_id mlai_kernel_id_of(const char *source, const char *const *options,
                                 int32_t num_options, int32_t compiler)
{
    XXH128_hash_t hash = XXH3_128bits(source, strlen(source));
    for (int32_t i = 0; i < num_options; i++) {
        XXH128_hash_t next =
            XXH3_128bits_withSeed(options[i], strlen(options[i]), hash.low64);
        hash = XXH3_128bits_withSeed(&next, sizeof next, hash.high64);
    }
    const int32_t last[] = {num_options, compiler};
    XXH128_hash_t next = XXH3_128bits_withSeed(last, sizeof last, hash.low64);
    return id_of_hash(XXH3_128bits_withSeed(&next, sizeof next, hash.high64));
}

bool mlai_kernel_id_is_equal(const mlai_kernel_id *a, const mlai_kernel_id *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* "DIRECTORY/0123...cdef.cubin", or nothing where that is too long. */
static bool write_path(char path[MAX_PATH_BYTES], const char *directory,
                       const mlai_kernel_id *id)
{
    char name[NAME_BYTES];
    for (int i = 0; i < MLAI_KERNEL_ID_BYTES; i++) {
        (void)snprintf(name + 2 * (size_t)i, 3, "%02x", id->byte[i]);
    }
    int length = snprintf(path, MAX_PATH_BYTES, "%s/%s.cubin", directory, name);
    return length > 0 && length < MAX_PATH_BYTES;
}

/* Up to `bytes`; fewer at the end of the file; -1 on failure. */
static ssize_t read_all(int file, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(file, (char *)to + done, bytes - done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static mla_status read_image(int file, const mlai_kernel_id *id, void *image,
                             size_t max_bytes, size_t *image_bytes, mla_error *err)
{
    header head;
    char beyond;
    MLAI_CHECK(read_all(file, &head, sizeof head) == (ssize_t)sizeof head, MLA_ERR_CORRUPT,
               "it ends within its header");
    MLAI_CHECK(memcmp(head.magic, magic, sizeof magic) == 0, MLA_ERR_CORRUPT,
               "it does not begin with MLAKERN1");
    MLAI_CHECK(mlai_kernel_id_is_equal(&head.id, id), MLA_ERR_CORRUPT,
               "it is the file of another kernel");
    MLAI_CHECK(head.image_bytes > 0 && head.image_bytes <= max_bytes, MLA_ERR_CORRUPT,
               "its image is said to have %llu bytes, and %zu is the most",
               (unsigned long long)head.image_bytes, max_bytes);
    MLAI_CHECK(read_all(file, image, head.image_bytes) == (ssize_t)head.image_bytes &&
                   read_all(file, &beyond, 1) == 0,
               MLA_ERR_CORRUPT, "it is not as long as its header says");
    mlai_kernel_id found = hash_of(image, head.image_bytes);
    MLAI_CHECK(mlai_kernel_id_is_equal(&found, &head.image_hash), MLA_ERR_CORRUPT,
               "its checksum is not that of its image");
    *image_bytes = head.image_bytes;
    return MLA_OK;
}

mlai_cached mlai_kernel_cache_get(const char *directory, const mlai_kernel_id *id,
                                  void *image, size_t max_bytes, size_t *image_bytes,
                                  mla_error *why)
{
    char path[MAX_PATH_BYTES];
    if (!write_path(path, directory, id)) {
        return MLAI_CACHED_ABSENT;
    }
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return MLAI_CACHED_ABSENT;
    }
    mla_status status = read_image(file, id, image, max_bytes, image_bytes, why);
    (void)close(file);
    return status == MLA_OK ? MLAI_CACHED_FOUND : MLAI_CACHED_CORRUPT;
}

static bool write_all(int file, const void *from, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t put = write(file, (const char *)from + done, bytes - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

/* Without this a crash of the machine could keep the old name of a new file. */
static bool sync_directory(const char *directory)
{
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    bool is_synced = fsync(file) == 0;
    (void)close(file);
    return is_synced;
}

static bool write_file(int file, const mlai_kernel_id *id, const void *image,
                       size_t image_bytes)
{
    header head = {
        .id = *id, .image_bytes = image_bytes, .image_hash = hash_of(image, image_bytes)};
    memcpy(head.magic, magic, sizeof magic);
    return write_all(file, &head, sizeof head) && write_all(file, image, image_bytes) &&
           fsync(file) == 0;
}

/* 0, or the errno of what went wrong; then the new file is gone again. */
static int write_and_move(char fresh[MAX_PATH_BYTES], const char *path,
                          const mlai_kernel_id *id, const void *image, size_t image_bytes)
{
    int file = mkostemp(fresh, O_CLOEXEC);
    if (file < 0) {
        return errno;
    }
    int failure = write_file(file, id, image, image_bytes) ? 0 : errno;
    if (close(file) != 0 && failure == 0) {
        failure = errno;
    }
    if (failure == 0 && rename(fresh, path) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        (void)unlink(fresh);
    }
    return failure;
}

mla_status mlai_kernel_cache_put(const char *directory, const mlai_kernel_id *id,
                                 const void *image, size_t image_bytes, mla_error *err)
{
    enum { PRIVATE = 0700 };
    char path[MAX_PATH_BYTES];
    char fresh[MAX_PATH_BYTES];
    (void)mkdir(directory, PRIVATE); /* what is wrong with it shows in a moment */
    int length = snprintf(fresh, sizeof fresh, "%s/.fresh-XXXXXX", directory);
    MLAI_CHECK(write_path(path, directory, id) && length < MAX_PATH_BYTES, MLA_ERR_STATE,
               "the cache directory's path is longer than %d bytes", MAX_PATH_BYTES);
    int failure = write_and_move(fresh, path, id, image, image_bytes);
    if (failure == 0 && !sync_directory(directory)) {
        failure = errno;
    }
    if (failure != 0) {
        return mlai_fail_errno(err, MLA_ERR_STATE, failure, MLAI_HERE,
                               "a kernel cannot be kept in %s", directory);
    }
    return MLA_OK;
}
