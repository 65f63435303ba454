/* random.c - the settings' source, or the kernel's: see random.h. */
#include "server/api/random.h"

#include <errno.h>
#include <sys/random.h>

#include "base/clock.h"

uint64_t api_random_of(const api_settings *settings)
{
    uint64_t number = 0;
    ssize_t got = -1;
    if (settings->random) {
        return settings->random(settings->user);
    }
    do {
        got = getrandom(&number, sizeof number, 0);
    } while (got < 0 && errno == EINTR);
    /* A kernel without it: the clock at least differs from request to request. */
    return got == (ssize_t)sizeof number ? number : (uint64_t)mlai_now_ns();
}
