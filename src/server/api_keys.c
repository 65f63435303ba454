/* api_keys.c - reading keys, and comparing without telling how far: see api_keys.h. */
#include "server/api_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/status.h"

enum { BLOCK_BYTES = 1024, MAX_FILE_BYTES = 2 * API_KEYS_MAX * API_KEY_MAX_BYTES };

typedef struct key_line {
    const char *path;
    int32_t number;
    size_t num;
    bool is_long;
    char text[API_KEY_MAX_BYTES];
} key_line;

static void trim(key_line *line)
{
    while (line->num > 0 && strchr(" \t\r", line->text[line->num - 1])) {
        line->num--;
    }
}

static mla_status end_line(api_keys *out, key_line *line, mla_error *err)
{
    line->number++;
    trim(line);
    if (line->num > 0 && line->text[0] != '#') {
        MLAI_CHECK(out->num < API_KEYS_MAX, MLA_ERR_ARGUMENT, "%s has more than %d keys",
                   line->path, API_KEYS_MAX);
        memcpy(out->keys[out->num], line->text, line->num);
        out->num++;
    }
    line->num = 0;
    return MLA_OK;
}

/* At once: a file such as /dev/zero has no end of the line to wait for. */
static mla_status check_length(const key_line *line, mla_error *err)
{
    MLAI_CHECK(!line->is_long, MLA_ERR_ARGUMENT,
               "%s: the key in line %d is longer than %d bytes", line->path,
               (int)line->number + 1, API_KEY_MAX_BYTES - 1);
    return MLA_OK;
}

static mla_status add_block(api_keys *out, key_line *line, const char *data, size_t bytes,
                            mla_error *err)
{
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\n') {
            MLAI_TRY(end_line(out, line, err));
        } else if (line->num + 1 < sizeof line->text && data[i] != 0) {
            line->text[line->num++] = data[i];
        } else {
            line->is_long = true;
        }
        MLAI_TRY(check_length(line, err));
    }
    return MLA_OK;
}

static mla_status read_all(int file, const char *path, api_keys *out, mla_error *err)
{
    key_line line = {.path = path};
    char block[BLOCK_BYTES];
    size_t bytes = 0;
    ssize_t got = 0;
    while ((got = read(file, block, sizeof block)) > 0) {
        bytes += (size_t)got;
        MLAI_CHECK(bytes <= MAX_FILE_BYTES, MLA_ERR_ARGUMENT, "%s is larger than %d bytes",
                   path, MAX_FILE_BYTES);
        MLAI_TRY(add_block(out, &line, block, (size_t)got, err));
    }
    if (got < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE, "cannot read %s",
                               path);
    }
    MLAI_TRY(end_line(out, &line, err));
    MLAI_CHECK(out->num > 0, MLA_ERR_ARGUMENT, "%s has no key in it", path);
    return MLA_OK;
}

mla_status api_keys_read(const char *path, api_keys *out, mla_error *err)
{
    *out = (api_keys){0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return mlai_fail_errno(err, MLA_ERR_ARGUMENT, errno, MLAI_HERE, "cannot open %s",
                               path);
    }
    mla_status status = read_all(file, path, out, err);
    (void)close(file);
    return status;
}

/* 0: equal. Looks at every byte, whatever it has seen. */
static unsigned difference_of(const char *a, const char *b)
{
    unsigned difference = 0;
    for (size_t i = 0; i < API_KEY_MAX_BYTES; i++) {
        difference |= (unsigned)(unsigned char)(a[i] ^ b[i]);
    }
    return difference;
}

bool api_keys_allow(const api_keys *self, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    char asked[API_KEY_MAX_BYTES] = {0};
    size_t bytes = strlen(authorization);
    if (bytes < sizeof scheme ||
        strncasecmp(authorization, scheme, sizeof scheme - 1) != 0 ||
        bytes - (sizeof scheme - 1) >= sizeof asked) {
        return false;
    }
    memcpy(asked, authorization + sizeof scheme - 1, bytes - (sizeof scheme - 1));
    unsigned is_known = 0;
    for (int32_t i = 0; i < self->num; i++) {
        is_known |= difference_of(self->keys[i], asked) == 0;
    }
    return is_known != 0;
}
