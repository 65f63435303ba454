/* command.h - the subcommands of mla. Each gets its own arguments (argv[0] is "mla NAME")
 * and returns the program's exit status. */
#ifndef MLA_CLI_COMMAND_H
#define MLA_CLI_COMMAND_H

enum {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1,
    COMMAND_MISUSED = 2,       /* the command line itself is wrong */
    COMMAND_DOES_NOT_FIT = 3,  /* of `mla plan`: a good answer, and it is no */
    COMMAND_INTERRUPTED = 130, /* as a shell says of SIGINT */
};

int command_serve(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_score(int argc, char **argv);
int command_tokenize(int argc, char **argv);
int command_attend(int argc, char **argv);
int command_memory(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_qualify(int argc, char **argv);

#endif
