/* size_option.h - a number of bytes on the command line: 4096, 512M, 1.5GiB, 2GB. */
#ifndef MLA_CLI_SIZE_OPTION_H
#define MLA_CLI_SIZE_OPTION_H

#include "cli/arguments.h"

/* K, M, G and T, alone or with iB, are powers of 1024; with B alone, of 1000. 0, or EINVAL
 * after a line that names the option. */
error_t size_option_parse(const char *option, const char *text, uint64_t least,
                          uint64_t *out);

#endif
