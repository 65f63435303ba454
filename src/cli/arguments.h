/* arguments.h - a subcommand's options by argp, where every mistake is one line. */
#ifndef MLA_CLI_ARGUMENTS_H
#define MLA_CLI_ARGUMENTS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

/* false: the command line is wrong, which has been said. --help exits. */
bool arguments_parse(const struct argp *argp, int argc, char **argv, void *input);

/* What a root parser calls on ARGP_KEY_INIT, so that argp adds no lines of its own. */
error_t arguments_begin(struct argp_state *state);

/* The arguments that are not options: each fills the first empty slot, and all slots must
 * be filled at ARGP_KEY_END. */
typedef struct arguments_slot {
    const char *name; /* "MODEL" */
    const char **out; /* NULL in it until the argument is there */
} arguments_slot;
error_t arguments_fill(const arguments_slot *slots, int num, const char *text);
error_t arguments_check_filled(const arguments_slot *slots, int num);

/* 0, or EINVAL after a line such as "--threads 0 is not a whole number from 1 to 1024".
 * 0 <= least. */
error_t arguments_integer(const char *option, const char *text, int64_t least, int64_t most,
                          int64_t *out);
error_t arguments_integer32(const char *option, const char *text, int32_t least,
                            int32_t most, int32_t *out);
error_t arguments_real(const char *option, const char *text, double least, double most,
                       float *out);

#endif
