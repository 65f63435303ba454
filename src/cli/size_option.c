/* size_option.c - reads bytes with a unit: see size_option.h. */
#include "cli/size_option.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/complain.h"

/* 0: no unit is written so. */
static double factor_of(const char *unit)
{
    static const char letters[] = "kmgt";
    if (*unit == 0 || strcasecmp(unit, "B") == 0) {
        return 1;
    }
    const char *letter = strchr(letters, *unit | 0x20);
    bool is_binary = unit[1] == 0 || strcasecmp(unit + 1, "iB") == 0;
    bool is_decimal = strcasecmp(unit + 1, "B") == 0;
    if (!letter || !*letter || (!is_binary && !is_decimal)) {
        return 0;
    }
    double factor = 1;
    for (long i = letter - letters; i >= 0; i--) {
        factor *= is_binary ? 1024 : 1000;
    }
    return factor;
}

error_t size_option_parse(const char *option, const char *text, uint64_t least,
                          uint64_t *out)
{
    const double most = 1e18;
    char *unit = NULL;
    errno = 0;
    double value = *text >= '0' && *text <= '9' ? strtod(text, &unit) : -1;
    double bytes = unit ? value * factor_of(unit) : -1;
    bool is_in = bytes >= (double)least && bytes <= most && bytes > 0;
    if (errno || !is_in) {
        (void)complain_misuse("%s '%s' is not a number of bytes such as 512M or 4GiB, at "
                              "least %llu",
                              option, text, (unsigned long long)least);
        return EINVAL;
    }
    *out = (uint64_t)bytes;
    return 0;
}
