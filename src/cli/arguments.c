/* arguments.c - argp with one line a mistake: see arguments.h. */
#include "cli/arguments.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/complain.h"
#include "cli/digits.h"

bool arguments_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    return argp_parse(argp, argc, argv, 0, NULL, input) == 0;
}

error_t arguments_begin(struct argp_state *state)
{
    state->err_stream = NULL; /* what getopt has to say is one line and still comes */
    return 0;
}

error_t arguments_fill(const arguments_slot *slots, int num, const char *text)
{
    for (int i = 0; i < num; i++) {
        if (!*slots[i].out) {
            *slots[i].out = text;
            return 0;
        }
    }
    (void)complain_misuse("'%s' is one argument too many", text);
    return EINVAL;
}

error_t arguments_check_filled(const arguments_slot *slots, int num)
{
    for (int i = 0; i < num; i++) {
        if (!*slots[i].out) {
            (void)complain_misuse("the argument %s is missing; --help lists what there is",
                                  slots[i].name);
            return EINVAL;
        }
    }
    return 0;
}

error_t arguments_integer(const char *option, const char *text, int64_t least, int64_t most,
                          int64_t *out)
{
    uint64_t value = 0;
    const char *end = digits_read(text, (uint64_t)most, &value);
    if (!end || *end || (int64_t)value < least) {
        (void)complain_misuse("%s '%s' is not a whole number from %lld to %lld", option,
                              text, (long long)least, (long long)most);
        return EINVAL;
    }
    *out = (int64_t)value;
    return 0;
}

error_t arguments_integer32(const char *option, const char *text, int32_t least,
                            int32_t most, int32_t *out)
{
    int64_t value = 0;
    error_t error = arguments_integer(option, text, least, most, &value);
    if (!error) {
        *out = (int32_t)value;
    }
    return error;
}

error_t arguments_real(const char *option, const char *text, double least, double most,
                       float *out)
{
    char *end = NULL;
    errno = 0;
    double value = strtod(text, &end);
    bool is_in = value >= least && value <= most; /* false for NaN */
    if (errno || end == text || *end || !is_in) {
        (void)complain_misuse("%s '%s' is not a number from %g to %g", option, text, least,
                              most);
        return EINVAL;
    }
    *out = (float)value;
    return 0;
}
