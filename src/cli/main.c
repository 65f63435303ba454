/* main.c - the program mla: a table of subcommands. */
#include <stdio.h>
#include <string.h>

#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/last_words.h"
#include "mla/mla.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} command;

static const command commands[] = {
    {"serve", command_serve, "an OpenAI-compatible server, and a page"},
    {"generate", command_generate, "answer prompts with a model"},
    {"score", command_score, "how likely a model finds a text"},
    {"tokenize", command_tokenize, "text to token ids, and back"},
    {"attend", command_attend, "one attention call on arrays from files"},
    {"memory", command_memory, "every byte by name, from loading to closing"},
    {"plan", command_plan, "whether a deployment fits, before it is loaded"},
    {"doctor", command_doctor, "what this machine and this build offer"},
    {"bench", command_bench, "how fast, and what share of the machine's limit"},
    {"qualify", command_qualify, "acceptance of a device or of a server, and its receipt"},
};
enum { NUM_COMMANDS = sizeof commands / sizeof commands[0] };

static char help_option[] = "--help"; /* argp's only other spelling is -? */

static int print_help(void)
{
    (void)printf("usage: mla SUBCOMMAND [OPTION...]\n\n");
    for (int i = 0; i < NUM_COMMANDS; i++) {
        (void)printf("  %-10s %s\n", commands[i].name, commands[i].what);
    }
    (void)printf("\n`mla SUBCOMMAND --help` lists the options of one.\n");
    return COMMAND_OK;
}

static int print_version(void)
{
    (void)printf("mla %d.%d.%d (%s)\n", MLA_VERSION_MAJOR, MLA_VERSION_MINOR,
                 MLA_VERSION_PATCH, MLA_BUILD_COMMIT);
    return COMMAND_OK;
}

static int run_command(const command *found, int argc, char **argv)
{
    static char title[32];
    (void)snprintf(title, sizeof title, "mla %s", found->name);
    if (argc > 1 && !strcmp(argv[1], "-h")) {
        argv[1] = help_option;
    }
    argv[0] = title;
    complain_as(title);
    return found->run(argc, argv);
}

static int run_named(int argc, char **argv)
{
    for (int i = 0; i < NUM_COMMANDS; i++) {
        if (!strcmp(argv[0], commands[i].name)) {
            return run_command(&commands[i], argc, argv);
        }
    }
    return complain_misuse("'%s' is not a subcommand; `mla help` lists them", argv[0]);
}

/* What `mla help` and `mla help SUBCOMMAND` print. */
static int help(int argc, char **argv)
{
    if (argc < 2) {
        return print_help();
    }
    char *asked[] = {argv[1], help_option, NULL};
    return run_named(2, asked);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        return complain_misuse("no subcommand is given; `mla help` lists them");
    }
    const char *name = argv[1];
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h")) {
        return help(argc - 1, argv + 1);
    }
    if (!strcmp(name, "--version") || !strcmp(name, "version") || !strcmp(name, "-V")) {
        return print_version();
    }
    return run_named(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    last_words_arrange();
    return dispatch(argc, argv);
}
