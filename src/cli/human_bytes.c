/* human_bytes.c - bytes in the largest unit that leaves a whole part: see human_bytes.h. */
#include "cli/human_bytes.h"

#include <stdio.h>

enum { KIB = 1024 };

void human_bytes_write(uint64_t bytes, char out[HUMAN_BYTES_CHARS])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = -1;
    while (value >= KIB && unit < 3) {
        value /= KIB;
        unit++;
    }
    if (unit < 0) {
        (void)snprintf(out, HUMAN_BYTES_CHARS, "%llu B", (unsigned long long)bytes);
    } else {
        (void)snprintf(out, HUMAN_BYTES_CHARS, "%.1f %s", value, units[unit]);
    }
}
