/* progress_bar.c - a bar on a terminal: see progress_bar.h. */
#include "cli/progress_bar.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR_CELLS = 32 };

static bool is_drawn;

void progress_bar_draw(const char *what, int64_t done, int64_t all)
{
    char cells[BAR_CELLS + 1];
    if (!isatty(STDERR_FILENO) || all <= 0) {
        return;
    }
    size_t filled = (size_t)(done < all ? done * BAR_CELLS / all : BAR_CELLS);
    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', filled);
    cells[BAR_CELLS] = 0;
    (void)fprintf(stderr, "\r%-10s [%s] %lld/%lld\x1b[K", what, cells, (long long)done,
                  (long long)all);
    (void)fflush(stderr);
    is_drawn = true;
}

void progress_bar_clear(void)
{
    if (is_drawn) {
        (void)fputs("\r\x1b[K", stderr);
        (void)fflush(stderr);
        is_drawn = false;
    }
}
