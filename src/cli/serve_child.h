/* serve_child.h - `mla serve` as a child of this process, from the same file. */
#ifndef MLA_CLI_SERVE_CHILD_H
#define MLA_CLI_SERVE_CHILD_H

#include <sys/types.h>

#include "mla/mla.h"

enum { SERVE_CHILD_TEXT = 256 };

/* Born as {.pid = 0, .file = -1}. */
typedef struct serve_child {
    pid_t pid;                   /* 0: none */
    int file;                    /* what it prints */
    char url[SERVE_CHILD_TEXT];  /* where it listens */
    char last[SERVE_CHILD_TEXT]; /* the last whole line that it printed */
} serve_child;

/* arguments: what stands after `mla`, "serve" first, NULL last; read. Waits until it listens. */
mla_status serve_child_start(serve_child *self, const char *const *arguments,
                             mla_error *err);

/* SIGTERM, and SIGKILL where that does not end it. *exit_status: as a shell says it. Nothing
 * where there is none. */
void serve_child_stop(serve_child *self, int *exit_status);

#endif
