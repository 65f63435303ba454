/* serve_child.c - fork, exec, and the line with the address: see serve_child.h. */
#include "cli/serve_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

enum {
    MAX_ARGUMENTS = 32,
    NOT_RUN = 127,
    SIGNALLED = 128,
    TRIES = 1500, /* of 10 ms each: for what drains */
    TRY_NS = 10000000,
};

/* Between fork and exec only what a signal handler may do. It ends with its parent. */
static void become(int file, char *const *arguments)
{
    if (dup2(file, STDOUT_FILENO) >= 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0) {
        (void)execv("/proc/self/exe", arguments);
    }
    _exit(NOT_RUN);
}

static mla_status spawn(serve_child *self, const char *const *arguments, mla_error *err)
{
    static char name[] = "mla";
    char *list[MAX_ARGUMENTS + 2] = {name};
    int ends[2];
    size_t num = 0;
    for (; arguments[num]; num++) {
    }
    MLAI_CHECK(num <= MAX_ARGUMENTS, MLA_ERR_ARGUMENT, "%zu arguments; %d at most", num,
               MAX_ARGUMENTS);
    memcpy(&list[1], arguments, num * sizeof *arguments); /* exec writes to none */
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, errno, MLAI_HERE,
                               "no pipe to a child");
    }
    (void)fflush(stdout);
    self->pid = fork();
    if (self->pid == 0) {
        become(ends[1], list);
    }
    int number = errno;
    (void)close(ends[1]);
    self->file = ends[0];
    if (self->pid < 0) {
        self->pid = 0;
        return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, number, MLAI_HERE, "no child");
    }
    return MLA_OK;
}

/* false: it prints no more. */
static bool read_line(serve_child *self)
{
    size_t length = 0;
    char byte = 0;
    ssize_t got = 0;
    while ((got = read(self->file, &byte, 1)) == 1 || (got < 0 && errno == EINTR)) {
        if (got == 1 && byte == '\n') {
            self->last[length] = '\0';
            return true;
        }
        if (got == 1 && length < sizeof self->last - 1) {
            self->last[length++] = byte;
        }
    }
    return false;
}

mla_status serve_child_start(serve_child *self, const char *const *arguments,
                             mla_error *err)
{
    static const char words[] = "listening on ";
    MLAI_TRY(spawn(self, arguments, err));
    while (read_line(self)) {
        if (strncmp(self->last, words, sizeof words - 1) == 0) {
            (void)snprintf(self->url, sizeof self->url, "%s",
                           self->last + sizeof words - 1);
            return MLA_OK;
        }
    }
    int status = 0;
    serve_child_stop(self, &status);
    return mlai_fail(err, MLA_ERR_STATE, MLAI_HERE,
                     "the server did not listen: it ended with status %d (what it had to "
                     "say stands before this)",
                     status);
}

static bool has_ended(serve_child *self, int *status)
{
    const struct timespec pause = {.tv_nsec = TRY_NS};
    for (int i = 0; i < TRIES; i++) {
        if (waitpid(self->pid, status, WNOHANG) == self->pid) {
            return true;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

void serve_child_stop(serve_child *self, int *exit_status)
{
    int status = 0;
    if (self->pid > 0) {
        (void)kill(self->pid, SIGTERM);
        if (!has_ended(self, &status)) {
            (void)kill(self->pid, SIGKILL);
            (void)waitpid(self->pid, &status, 0);
        }
        *exit_status =
            WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
    }
    if (self->file >= 0) {
        (void)close(self->file);
    }
    *self = (serve_child){.file = -1};
}
