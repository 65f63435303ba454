/* entropy.c - the settings' source, or the kernel's: see entropy.h. */
#include "server/api/entropy.h"

#include <unistd.h>

#include "base/clock.h"

uint64_t api_entropy_of(const api_settings *settings)
{
    uint64_t number = 0;
    if (settings->entropy) {
        return settings->entropy(settings->user);
    }
    /* A kernel without it: the clock at least differs from request to request. */
    return getentropy(&number, sizeof number) == 0 ? number : (uint64_t)mlai_now_ns();
}
