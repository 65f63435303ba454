/* last_words.c - one line for what no command notices: see last_words.h. */
#include "cli/last_words.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complain.h"

/* At exit, because argp leaves by exit after --help. */
static void finish_output(void)
{
    if ((fflush(stdout) || ferror(stdout)) && !complain_has_spoken()) {
        int number = errno;
        (void)complain_text("standard output cannot be written: %s", strerror(number));
        _exit(COMMAND_FAILED);
    }
}

/* The weights are mapped: a file that is cut short takes its pages along, and the next look
 * at them is this signal. Copying the weights would cost their size again. */
static void report_lost_page(int number, siginfo_t *info, void *context)
{
    static const char line[] =
        "mla: a file became shorter while it was in use, or its disk "
        "can no longer be read\n";
    (void)number;
    (void)context;
    if (info->si_code == BUS_ADRERR) {
        (void)!write(STDERR_FILENO, line, sizeof line - 1);
        _exit(COMMAND_FAILED);
    } /* else a mistake of ours: again, and as if nothing were arranged */
}

void last_words_arrange(void)
{
    struct sigaction lost;
    struct sigaction ignored;
    memset(&lost, 0, sizeof lost);
    memset(&ignored, 0, sizeof ignored);
    lost.sa_sigaction = report_lost_page;
    lost.sa_flags = (int)(SA_SIGINFO | SA_RESETHAND);
    ignored.sa_handler = SIG_IGN;
    (void)sigaction(SIGBUS, &lost, NULL);
    (void)sigaction(SIGPIPE, &ignored, NULL);
    (void)atexit(finish_output);
}
