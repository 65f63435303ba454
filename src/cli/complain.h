/* complain.h - what went wrong, as exactly one line on standard error. */
#ifndef MLA_CLI_COMPLAIN_H
#define MLA_CLI_COMPLAIN_H

#include <stdbool.h>

#include "mla/mla.h"

/* "mla generate": what stands in front of the sentence. title: static storage. */
void complain_as(const char *title);

/* Whether a line has been printed. */
bool complain_has_spoken(void);

/* Each prints its sentence and returns the exit status for it: COMMAND_FAILED, but for a
 * misuse COMMAND_MISUSED. */
int complain(const mla_error *err);
int complain_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
int complain_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
