/* access_log.c - lines for the log: see access_log.h. */
#include "server/access_log.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 1000, SHOWN_PATH = 200 };

static void write_time(char out[32])
{
    struct tm parts;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (!gmtime_r(&now.tv_sec, &parts) ||
        strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
        out[0] = 0;
    }
}

/* A pipe that nobody reads is full, and would block: then the line is lost. A pipe with room
 * takes a line of this length at once. */
static void put(access_log *self, const char *line, size_t bytes)
{
    struct pollfd asked = {.fd = self->file, .events = POLLOUT};
    if (poll(&asked, 1, 0) != 1 || (asked.revents & POLLOUT) == 0 ||
        write(self->file, line, bytes) != (ssize_t)bytes) {
        self->num_lost++;
    }
}

/* What a client chose must not look like another field or another line. */
static void blank_out(char *text)
{
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte <= ' ' || byte == '"' || byte >= 0x7f) {
            *text = '?';
        }
    }
}

void access_log_write(access_log *self, const access_entry *entry)
{
    char when[32];
    char path[SHOWN_PATH + 1];
    char tokens[96] = "";
    char line[LINE_BYTES];
    if (self->file < 0) {
        return;
    }
    write_time(when);
    (void)snprintf(path, sizeof path, "%s", entry->path);
    blank_out(path);
    if (entry->prompt_tokens > 0) {
        (void)snprintf(tokens, sizeof tokens, " prompt=%lld cached=%lld new=%lld",
                       (long long)entry->prompt_tokens, (long long)entry->cached_tokens,
                       (long long)entry->new_tokens);
    }
    (void)snprintf(line, sizeof line - 1, "%s %s %s %s %d %.1fms%s%s%s", when,
                   entry->peer[0] ? entry->peer : "-", entry->method, path, entry->status,
                   (double)entry->took_ns / 1e6, tokens, entry->note[0] ? " " : "",
                   entry->note);
    size_t bytes = strlen(line);
    line[bytes++] = '\n';
    put(self, line, bytes);
}
