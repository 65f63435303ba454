/* host_memory.c - reads /proc/meminfo: see host_memory.h. */
#include "device/host_memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* The fields wanted are among the first three lines. */
enum { TEXT_BYTES = 512, BYTES_PER_KB = 1024 };

static const char *line_of(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            return line + length + 1;
        }
    }
    return NULL;
}

uint64_t mlai_host_memory_field(const char *text, const char *name)
{
    const char *at = line_of(text, name);
    if (!at) {
        return 0;
    }
    at += strspn(at, " \t");
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
            return 0;
        }
    }
    bool is_whole = strncmp(at, " kB", 3) == 0 &&
                    !__builtin_mul_overflow(value, (uint64_t)BYTES_PER_KB, &value);
    return is_whole ? value : 0;
}

void mlai_host_memory(uint64_t *total_bytes, uint64_t *free_bytes)
{
    char text[TEXT_BYTES] = {0};
    ssize_t length = -1;
    int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, text, sizeof text - 1);
        (void)close(file);
    }
    text[length > 0 ? length : 0] = '\0';
    *total_bytes = mlai_host_memory_field(text, "MemTotal");
    *free_bytes = mlai_host_memory_field(text, "MemAvailable");
}
