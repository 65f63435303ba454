/* model_options.h - the options that every subcommand with a model has. */
#ifndef MLA_CLI_MODEL_OPTIONS_H
#define MLA_CLI_MODEL_OPTIONS_H

#include "cli/arguments.h"
#include "mla/mla.h"

typedef struct model_options {
    const char *dir; /* the argument MODEL */
    mla_kv_format kv_format;
    int32_t num_threads; /* 0: all allowed CPUs */
    bool is_json;
} model_options;

#define MODEL_OPTIONS_DEFAULT                                                              \
    {                                                                                      \
        .kv_format = MLA_KV_BF16                                                           \
    }

/* A child of the subcommand's own argp; its input is a model_options. Keys from 0x1000. */
extern const struct argp model_options_argp;

enum { OPTIONS_MAX_THREADS = 1024 };

#endif
