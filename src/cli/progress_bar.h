/* progress_bar.h - one line on standard error that says how far something is; nothing at all
 * where standard error is no terminal. */
#ifndef MLA_CLI_PROGRESS_BAR_H
#define MLA_CLI_PROGRESS_BAR_H

#include <stdint.h>

void progress_bar_draw(const char *what, int64_t done, int64_t all);
void progress_bar_clear(void);

#endif
