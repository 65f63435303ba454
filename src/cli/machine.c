/* machine.c - memory and huge pages as the kernel tells them: see machine.h. */
#include "cli/machine.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/digits.h"

enum { MAX_TEXT = 8192, KIB = 1024 };

/* Reads the start of a small file of the kernel's; "" where there is none. */
static const char *read_text(const char *path)
{
    static char text[MAX_TEXT];
    ssize_t got = -1;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        got = read(file, text, sizeof text - 1);
        (void)close(file);
    }
    text[got > 0 ? got : 0] = 0;
    return text;
}

/* "Name:   123 kB" -> 123 * unit; null where the name is not there. */
static json_t *find_number(const char *text, const char *name, json_int_t unit)
{
    const char *at = strstr(text, name);
    uint64_t value = 0;
    if (!at) {
        return json_null();
    }
    at += strlen(name);
    at += strspn(at, " \t");
    return digits_read(at, INT64_MAX / KIB, &value) ? json_integer((json_int_t)value * unit)
                                                    : json_null();
}

json_t *machine_memory(void)
{
    const char *text = read_text("/proc/meminfo");
    return json_pack("{s:o, s:o}", "total_bytes", find_number(text, "MemTotal:", KIB),
                     "available_bytes", find_number(text, "MemAvailable:", KIB));
}

/* "always [madvise] never" -> "madvise" */
static json_t *chosen_word(const char *text)
{
    const char *begin = strchr(text, '[');
    const char *end = begin ? strchr(begin, ']') : NULL;
    return end ? json_stringn(begin + 1, (size_t)(end - begin - 1)) : json_null();
}

json_t *machine_huge_pages(void)
{
    json_t *transparent =
        chosen_word(read_text("/sys/kernel/mm/transparent_hugepage/enabled"));
    const char *text = read_text("/proc/meminfo");
    return json_pack("{s:o, s:o, s:o, s:o}", "transparent", transparent, "page_bytes",
                     find_number(text, "Hugepagesize:", KIB), "total",
                     find_number(text, "HugePages_Total:", 1), "free",
                     find_number(text, "HugePages_Free:", 1));
}
