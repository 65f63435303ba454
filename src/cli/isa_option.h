/* isa_option.h - --isa, of the subcommands that have it. */
#ifndef MLA_CLI_ISA_OPTION_H
#define MLA_CLI_ISA_OPTION_H

#include "cli/arguments.h"
#include "mla/mla.h"

/* For an argp table: {"isa", KEY, ISA_OPTION_WORDS, 0, ISA_OPTION_HELP, 0}. */
#define ISA_OPTION_WORDS "c|avx2"
#define ISA_OPTION_HELP  "instruction set (default: the best there is)"

/* *mask: bits of mla_isa, portable C among them. */
error_t isa_option_parse(const char *text, uint32_t *mask);

/* Has the device what was asked for? mask: 0 asks for nothing. */
mla_status isa_option_check(uint32_t mask, const mla_device_info *info, mla_error *err);

#endif
