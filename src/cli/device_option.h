/* device_option.h - --device, of the subcommands that have it. */
#ifndef MLA_CLI_DEVICE_OPTION_H
#define MLA_CLI_DEVICE_OPTION_H

#include "cli/arguments.h"
#include "mla/mla.h"

/* For an argp table: {"device", KEY, DEVICE_OPTION_WORDS, 0, HELP, 0}. */
#define DEVICE_OPTION_WORDS "cpu|cuda"

error_t device_option_parse(const char *text, mla_backend *out);

#endif
