#include "cli/command.h"
int command_bench(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return COMMAND_FAILED;
}
