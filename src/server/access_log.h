/* access_log.h - a line a request. A log that cannot be written loses lines, and never holds
 * up or ends the server. */
#ifndef MLA_SERVER_ACCESS_LOG_H
#define MLA_SERVER_ACCESS_LOG_H

#include <stdint.h>

typedef struct access_log {
    int file;          /* -1: none */
    uint64_t num_lost; /* lines that were not written whole */
} access_log;

typedef struct access_entry {
    const char *peer, *method, *path;
    int status; /* 499: the client left */
    int64_t took_ns;
    int64_t prompt_tokens, cached_tokens, new_tokens; /* all 0: not shown */
    const char *note;                                 /* "": none */
} access_entry;

void access_log_write(access_log *self, const access_entry *entry);

#endif
